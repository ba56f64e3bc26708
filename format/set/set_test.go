package set

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weightfs/format/tensor"
)

// tree makes files: NAME, NAME=CONTENT, NAME->TARGET for a link, NAME/ for a directory.
func tree(t *testing.T, specs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, spec := range specs {
		name, target, link := strings.Cut(spec, "->")
		name, content, _ := strings.Cut(name, "=")
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case link:
			err = os.Symlink(target, path)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		default:
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// weightMap is an index of one tensor a file.
func weightMap(files ...string) string {
	var b strings.Builder
	b.WriteString(`{"metadata":{"total_size":1e999},"weight_map":{`)
	for i, f := range files {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"t` + string(rune('a'+i)) + `":"` + f + `"`)
	}
	return b.String() + "}}"
}

const (
	st1 = "model-00001-of-00002.safetensors"
	st2 = "model-00002-of-00002.safetensors"
	idx = "model.safetensors.index.json"
)

func TestFind(t *testing.T) {
	index := idx + "=" + weightMap(st1, st2)
	for name, c := range map[string]struct {
		tree []string
		path string
		want Set
	}{
		"file":                     {[]string{"lora.safetensors", "secret.txt"}, "lora.safetensors", Set{Name: "lora.safetensors", Stem: "model", Files: []string{"lora.safetensors"}}},
		"file of any extension":    {[]string{"weights"}, "weights", Set{Name: "weights", Stem: "model", Files: []string{"weights"}}},
		"file with a known name":   {[]string{"adapter_model.safetensors", "a.txt"}, "adapter_model.safetensors", Set{Name: "adapter_model.safetensors", Stem: "adapter_model", Files: []string{"adapter_model.safetensors"}, Side: []string{"a.txt"}}},
		"file beside a config":     {[]string{"x.safetensors", "config.json"}, "x.safetensors", Set{Name: "x.safetensors", Stem: "model", Files: []string{"x.safetensors"}, Side: []string{"config.json"}}},
		"index":                    {[]string{index, st1, st2}, idx, Set{Stem: "model", Index: idx, Files: []string{st1, st2}}},
		"index of a directory":     {[]string{index, st1, st2, "config.json"}, "", Set{Stem: "model", Index: idx, Files: []string{st1, st2}, Side: []string{"config.json"}}},
		"shard that an index has":  {[]string{index, st1, st2}, st2, Set{Stem: "model", Index: idx, Files: []string{st1, st2}}},
		"odd shard of an index":    {[]string{idx + "=" + weightMap("a.safetensors", "b.safetensors"), "a.safetensors", "b.safetensors"}, "b.safetensors", Set{Stem: "model", Index: idx, Files: []string{"a.safetensors", "b.safetensors"}}},
		"shard that no index has":  {[]string{idx + "=" + weightMap("a.safetensors"), "a.safetensors", st1, st2}, st1, Set{Stem: "model", Files: []string{st1, st2}}},
		"lone file, broken index":  {[]string{idx + "=[]", "x.safetensors"}, "x.safetensors", Set{Name: "x.safetensors", Stem: "model", Files: []string{"x.safetensors"}, Warnings: []string{"model.safetensors.index.json is not used: "}}},
		"stray beside an index":    {[]string{index, st1, st2, "consolidated.safetensors", "model.safetensors"}, "", Set{Stem: "model", Index: idx, Files: []string{st1, st2}, Warnings: []string{"left out: consolidated.safetensors, model.safetensors (model.safetensors.index.json does not name them)"}}},
		"subfolders":               {[]string{idx + "=" + weightMap("unet/b.safetensors", "./a.safetensors", "a.safetensors"), "a.safetensors", "unet/b.safetensors"}, "", Set{Stem: "model", Index: idx, Files: []string{"a.safetensors", "unet/b.safetensors"}}},
		"variant of an index":      {[]string{"model.safetensors.index.fp16.json=" + weightMap("a.safetensors"), "a.safetensors"}, "", Set{Stem: "model", Index: "model.safetensors.index.fp16.json", Files: []string{"a.safetensors"}}},
		"standard index first":     {[]string{index, "model.fp16.safetensors.index.json=" + weightMap("f.safetensors"), st1, st2, "f.safetensors"}, "", Set{Stem: "model", Index: idx, Files: []string{st1, st2}, Warnings: []string{"left out: f.safetensors (model.safetensors.index.json does not name them)"}}},
		"diffusers variant":        {[]string{"diffusion_pytorch_model.fp16.safetensors.index.json=" + weightMap("a.safetensors"), "a.safetensors"}, "", Set{Stem: "diffusion_pytorch_model", Index: "diffusion_pytorch_model.fp16.safetensors.index.json", Files: []string{"a.safetensors"}}},
		"model.safetensors first":  {[]string{"model.safetensors", "x.safetensors", "pytorch_model.bin", "m.gguf"}, "", Set{Stem: "model", Files: []string{"model.safetensors"}, Warnings: []string{"left out: x.safetensors", "left out: m.gguf (--many shows all)"}}},
		"numbered set":             {[]string{st2, st1}, "", Set{Stem: "model", Files: []string{st1, st2}}},
		"numbered set, stray file": {[]string{st2, st1, "consolidated.safetensors"}, "", Set{Stem: "model", Files: []string{st1, st2}, Warnings: []string{"left out: consolidated.safetensors"}}},
		"one set is complete":      {[]string{st2, st1, "old-00001-of-00009.safetensors"}, "", Set{Stem: "model", Files: []string{st1, st2}, Warnings: []string{"left out: old-00001-of-00009.safetensors"}}},
		"standard set of two":      {[]string{st2, st1, "z-00001-of-00001.safetensors"}, "", Set{Stem: "model", Files: []string{st1, st2}, Warnings: []string{"left out: z-00001-of-00001.safetensors"}}},
		"part of a set elsewhere":  {[]string{"q-00001-of-00002.gguf", "q-00002-of-00002.gguf", "letter.txt"}, "q-00002-of-00002.gguf", Set{Name: "q.gguf", Stem: "model", Files: []string{"q-00001-of-00002.gguf", "q-00002-of-00002.gguf"}}},
		"bloom's underscore":       {[]string{"model_00001-of-00001.safetensors"}, "", Set{Stem: "model", Files: []string{"model_00001-of-00001.safetensors"}}},
		"numbered from zero":       {[]string{"w-00000-of-00002.npz", "w-00001-of-00002.npz"}, "w-00000-of-00002.npz", Set{Name: "w.npz", Stem: "model", Files: []string{"w-00000-of-00002.npz", "w-00001-of-00002.npz"}}},
		"unpadded":                 {unpadded(11), "m-1-of-11.gguf", Set{Name: "m.gguf", Stem: "model", Files: unpadded(11)}},
		"consolidated.NN.pth":      {[]string{"consolidated.01.pth", "consolidated.00.pth", "params.json"}, "", Set{Stem: "consolidated", Files: []string{"consolidated.00.pth", "consolidated.01.pth"}, Side: []string{"params.json"}}},
		"one consolidated.NN.pth":  {[]string{"consolidated.01.pth", "consolidated.00.pth", "params.json"}, "consolidated.01.pth", Set{Name: "consolidated.01.pth", Stem: "consolidated", Files: []string{"consolidated.01.pth"}, Side: []string{"params.json"}}},
		"only safetensors file":    {[]string{"a.safetensors", "pytorch_model.bin"}, "", Set{Stem: "model", Files: []string{"a.safetensors"}, Warnings: []string{"left out: pytorch_model.bin (--many shows all)"}}},
		"same weights in torch":    {[]string{index, st1, st2, "pytorch_model.bin.index.json=" + weightMap("pytorch_model-1-of-1.bin"), "pytorch_model-1-of-1.bin"}, "", Set{Stem: "model", Index: idx, Files: []string{st1, st2}}},
		"adapter twice":            {[]string{"adapter_model.safetensors", "adapter_model.bin"}, "", Set{Stem: "adapter_model", Files: []string{"adapter_model.safetensors"}}},
		"torch, ONNX, npz":         {[]string{"sd.pth=PK\x03\x04", "m.onnx", "w.npz"}, "", Set{Stem: "model", Files: []string{"sd.pth"}, Warnings: []string{"left out: m.onnx, w.npz (--many shows all)"}}},
		"torch and npy":            {[]string{"sd.pth", "one.npy"}, "", Set{Stem: "model", Files: []string{"sd.pth"}, Warnings: []string{"left out: one.npy (--many shows all)"}}},
		"GGUF, ONNX, npz":          {[]string{"tiny.gguf", "m.onnx", "w.npz"}, "", Set{Stem: "model", Files: []string{"tiny.gguf"}, Warnings: []string{"left out: m.onnx, w.npz (--many shows all)"}}},
		"GGUF set beside an index": {[]string{index, st1, st2, "q-1-of-2.gguf", "q-2-of-2.gguf"}, "", Set{Stem: "model", Index: idx, Files: []string{st1, st2}, Warnings: []string{"left out: q-1-of-2.gguf (--many shows all)"}}},
		"ONNX beside safetensors":  {[]string{"model.safetensors", "model.onnx"}, "", Set{Stem: "model", Files: []string{"model.safetensors"}, Warnings: []string{"left out: model.onnx (--many shows all)"}}},
		"torch index":              {[]string{"pytorch_model.bin.index.json=" + weightMap("a.bin"), "a.bin"}, "", Set{Stem: "model", Index: "pytorch_model.bin.index.json", Files: []string{"a.bin"}}},
		"torch, trainer's state":   {[]string{"net.pth=PK", "optimizer.pt", "rng_state_0.pth", "training_args.bin"}, "", Set{Stem: "model", Files: []string{"net.pth"}}},
		"ONNX, raw data beside":    {[]string{"model.onnx", "w.bin=raw tensors"}, "", Set{Stem: "model", Files: []string{"model.onnx"}}},
		"one GGUF":                 {[]string{"m.gguf", "README.md"}, "", Set{Stem: "model", Files: []string{"m.gguf"}, Side: []string{"README.md"}}},
		"one npz, dot files":       {[]string{"._b.npz", "b.npz", ".env", "d/"}, "", Set{Stem: "model", Files: []string{"b.npz"}}},
		"side files":               {[]string{"model.safetensors", "in.txt->config.json", "config.json", "out.txt->/etc/passwd", "up.txt->../x", "x.h5"}, "", Set{Stem: "model", Files: []string{"model.safetensors"}, Side: []string{"config.json", "in.txt"}}},
		"links to weights":         {[]string{"a/model.safetensors->../b", "b"}, "a", Set{Name: "a", Stem: "model", Files: []string{"model.safetensors"}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, c.tree...)
			got, err := Find(filepath.Join(dir, c.path), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if c.want.Name == "" {
				c.want.Name = filepath.Base(dir)
			}
			prefix := cmp.FilterPath(func(p cmp.Path) bool { return strings.HasPrefix(p.String(), "Warnings") },
				cmp.Comparer(func(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }))
			if diff := cmp.Diff(&c.want, got, prefix, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Set{}, "Dir", "Map", "Rename")); diff != "" {
				t.Error(diff)
			}
			for _, f := range got.Files {
				if _, err := os.Stat(got.Path(f)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func unpadded(n int) (names []string) {
	for i := 1; i <= n; i++ {
		names = append(names, (&numberedSet{partSet: partSet{"m", "-", "11", ".gguf"}, width: 1}).partName(i))
	}
	return names
}

func TestFindRefuses(t *testing.T) {
	var incomplete *IncompleteError
	var several *SeveralError
	var none *NoneError
	for name, c := range map[string]struct {
		tree []string
		path string
		as   any
		is   error
		says []string
	}{
		"missing shard":          {[]string{idx + "=" + weightMap(st1, st2), st1}, "", &incomplete, nil, []string{st2, "1 of 2 files", "--partial"}},
		"missing shard, part":    {[]string{idx + "=" + weightMap(st1, st2), st1}, st1, &incomplete, nil, []string{st2}},
		"gap without an index":   {[]string{"m-00001-of-00003.safetensors", "m-00003-of-00003.safetensors"}, "", &incomplete, nil, []string{"m-00002-of-00003.safetensors"}},
		"gap in GGUF":            {[]string{"m-00002-of-00003.gguf"}, "m-00002-of-00003.gguf", &incomplete, nil, []string{"m-00001-of-00003.gguf, m-00003-of-00003.gguf"}},
		"gap in consolidated":    {[]string{"consolidated.00.pth", "consolidated.02.pth"}, "", &incomplete, nil, []string{"consolidated.01.pth"}},
		"all shards missing":     {[]string{idx + "=" + weightMap(st1, st2)}, "", &incomplete, nil, []string{"2 of 2 files", st1, st2}},
		"dangling file":          {[]string{"model.safetensors->../../blobs/abc"}, "model.safetensors", &incomplete, nil, []string{"../../blobs/abc"}},
		"dangling in directory":  {[]string{"model.safetensors->../../blobs/abc"}, "", &incomplete, nil, []string{"../../blobs/abc"}},
		"dangling index":         {[]string{idx + "->../../blobs/abc"}, "", &incomplete, nil, []string{"../../blobs/abc"}},
		"unfinished download":    {[]string{idx + "=" + weightMap(st1, st2), st1, st2 + ".part=12345"}, "", &incomplete, nil, []string{st2 + ".part", "5 bytes"}},
		"unfinished lone file":   {[]string{"m.gguf.aria2=1"}, "m.gguf", &incomplete, nil, []string{"m.gguf.aria2"}},
		"hub client's download":  {[]string{st1, ".cache/huggingface/download/x.abc.incomplete"}, "", &incomplete, nil, []string{"x.abc.incomplete"}},
		"file as a directory":    {[]string{idx + "=" + weightMap("a/b.safetensors"), "a"}, "", &incomplete, nil, []string{"a/b.safetensors"}},
		"two files":              {[]string{"b.safetensors", "a.safetensors", "c.gguf"}, "", &several, nil, []string{"a.safetensors, b.safetensors, c.gguf"}},
		"two indexes":            {[]string{"a.safetensors.index.json", "b.safetensors.index.json"}, "", &several, nil, []string{"a.safetensors.index.json"}},
		"two quantisations":      {[]string{"m-Q4.gguf", "m-Q8-00001-of-00002.gguf", "m-Q8-00002-of-00002.gguf"}, "", &several, nil, []string{"m-Q4.gguf, m-Q8-00001-of-00002.gguf"}},
		"incomplete and another": {[]string{"m-1-of-2.safetensors", "l.safetensors"}, "", &several, nil, []string{"l.safetensors", "m-1-of-2.safetensors"}},
		"pipeline":               {[]string{"model_index.json={}", "all.safetensors", "unet/d.safetensors", "vae/v.safetensors", "tokenizer/t.json"}, "", &several, nil, []string{"all.safetensors, unet, vae (name"}},
		"empty directory":        {nil, "", &none, ErrNone, []string{"empty"}},
		"something else":         {[]string{"a.txt", "d/"}, "", &none, ErrNone, []string{"a.txt", "d/"}},
		"DCP":                    {[]string{".metadata", "__0_0.distcp", "a.pt", "b.pt"}, "", &none, tensor.ErrUnsupported, []string{"DCP"}},
		"Orbax":                  {[]string{"_CHECKPOINT_METADATA", "d/"}, "", &none, ErrNone, []string{"Orbax"}},
		"only trainer's state":   {[]string{"optimizer.pt"}, "", &none, ErrNone, nil},
		"no such path":           {nil, "x", nil, os.ErrNotExist, []string{"x"}},
		"absolute path":          {[]string{idx + "=" + weightMap("/etc/hostname")}, idx, nil, tensor.ErrUnsafe, []string{"/etc/hostname", idx, `tensor "ta"`}},
		"path upwards":           {[]string{idx + "=" + weightMap("a/../../x")}, idx, nil, tensor.ErrUnsafe, []string{"a/../../x"}},
		"path with a backslash":  {[]string{idx + "=" + weightMap(`..\\x`)}, idx, nil, tensor.ErrUnsafe, []string{"backslash"}},
		"path with a NUL":        {[]string{idx + "=" + weightMap(`a\u0000`)}, idx, nil, tensor.ErrUnsafe, []string{"NUL"}},
		"empty file name":        {[]string{idx + "=" + weightMap("")}, idx, nil, tensor.ErrUnsafe, []string{"empty"}},
		"the directory itself":   {[]string{idx + "=" + weightMap(".")}, idx, nil, tensor.ErrUnsafe, []string{"no file"}},
		"long file name":         {[]string{idx + "=" + weightMap(strings.Repeat("a/", 3000))}, idx, nil, tensor.ErrUnsafe, []string{"6000 bytes"}},
		"directory as a shard":   {[]string{idx + "=" + weightMap("d"), "d/"}, idx, nil, tensor.ErrMalformed, []string{"not a regular file"}},
		"byte order mark":        {[]string{idx + "=\ufeff" + weightMap("model-00001-of-00002.safetensors"), st1}, "", nil, tensor.ErrMalformed, []string{"byte order mark of UTF-8"}},
		"broken index, shard":    {[]string{idx + "=[]", st1, st2}, st1, nil, tensor.ErrMalformed, []string{"an array", idx}},
		"not an index":           {[]string{`config.json={"a":{"b":[1,2]}}`}, "config.json", nil, tensor.ErrMalformed, []string{"no weight_map"}},
		"config of a model":      {[]string{"config.json={}", "model.safetensors"}, "config.json", nil, tensor.ErrMalformed, []string{"config.json: no checkpoint", "name the directory: "}},
		"card of many models":    {[]string{"README.md=# a", "a.gguf", "b.gguf"}, "README.md", nil, tensor.ErrMalformed, []string{"name the directory: "}},
		"list of a pipeline":     {[]string{"model_index.json={}", "unet/d.safetensors"}, "model_index.json", nil, tensor.ErrMalformed, []string{"name the directory: "}},
		"text for a link":        {[]string{idx + "=../../blobs/cccc"}, idx, nil, tensor.ErrMalformed, []string{"symbolic link", "../../blobs/cccc"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Find(filepath.Join(tree(t, c.tree...), c.path), Options{})
			if err == nil {
				t.Fatalf("found %+v", got)
			}
			if got != nil {
				t.Error("a set with an error")
			}
			if c.as != nil && !errors.As(err, c.as) {
				t.Errorf("%T: %v", err, err)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is not %v", err, c.is)
			}
			for _, word := range c.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %q", err, word)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

// A checkpoint of an odd name beside another is one all the same.
func TestFindDecidesOddNamesByContent(t *testing.T) {
	dir := tree(t, "model.safetensors", "weights=GGUF\x03\x00\x00\x00")
	s, err := Find(filepath.Join(dir, "weights"), Options{})
	if err != nil || !slices.Equal(s.Files, []string{"weights"}) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestPartialTakesWhatIsThere(t *testing.T) {
	dir := tree(t, idx+"="+weightMap(st1, st2), st1)
	s, err := Find(dir, Options{Partial: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{st1}, s.Files); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{st2}, s.Missing); diff != "" {
		t.Error(diff)
	}
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], st2) {
		t.Errorf("warnings: %q", s.Warnings)
	}
	if _, err := Find(tree(t, idx+"="+weightMap(st1)), Options{Partial: true}); err == nil {
		t.Error("nothing is there, and that is no error")
	}
}

// hubSnapshot is a hub cache's folder, as links are in it.
func hubSnapshot(t *testing.T, more ...string) string {
	root := tree(t, append([]string{
		"models--org--a-name/blobs/aaaa", "models--org--a-name/blobs/bbbb",
		"models--org--a-name/blobs/cccc=" + weightMap(st1, st2), "models--org--a-name/blobs/dddd",
		"models--org--a-name/snapshots/rev/" + st1 + "->../../blobs/aaaa",
		"models--org--a-name/snapshots/rev/" + st2 + "->../../blobs/bbbb",
		"models--org--a-name/snapshots/rev/" + idx + "->../../blobs/cccc",
		"models--org--a-name/snapshots/rev/config.json->../../blobs/dddd",
		"models--org--a-name/snapshots/rev/passwd->../../../../../../../etc/passwd",
	}, more...)...)
	return filepath.Join(root, "models--org--a-name", "snapshots", "rev")
}

func TestHubSnapshot(t *testing.T) {
	for _, name := range []string{"", idx, st1} {
		s, err := Find(filepath.Join(hubSnapshot(t), name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := &Set{Name: "org/a-name", Stem: "model", Index: idx, Files: []string{st1, st2}, Side: []string{"config.json"}}
		if diff := cmp.Diff(want, s, cmpopts.IgnoreFields(Set{}, "Dir", "Map", "Rename")); diff != "" {
			t.Error(diff)
		}
	}
}

func TestHubSnapshotWithoutABlob(t *testing.T) {
	dir := hubSnapshot(t, "models--org--a-name/blobs/bbbb.incomplete=123")
	if err := os.Remove(filepath.Join(dir, "../../blobs/bbbb")); err != nil {
		t.Fatal(err)
	}
	_, err := Find(dir, Options{})
	fault, ok := errors.AsType[*IncompleteError](err)
	if !ok {
		t.Fatal(err)
	}
	if len(fault.Missing) != 1 || fault.Missing[0].Target != "../../blobs/bbbb" || len(fault.Unfinished) != 1 {
		t.Errorf("%+v", fault)
	}
	if !strings.Contains(err.Error(), "bbbb.incomplete, 3 bytes") {
		t.Error(err)
	}
}

// A link to its own directory, twice, is 2^40 paths to whoever follows them.
func TestPipelineOfCirclesEnds(t *testing.T) {
	dir := tree(t, "model_index.json={}", "a->.", "b->.")
	if _, err := Find(dir, Options{}); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

func TestStoredCases(t *testing.T) {
	for name, says := range map[string]string{
		"two-shards": "", "index-names-absent-tensor": "", "index-names-wrong-shard": "", "shards-without-index": "",
		"sloppy-index": "", "stray-file-beside-index": "", "sharded-bin": "", "gguf-split": "",
		"missing-shard": st2, "weight-map-absolute": "/etc/hostname", "gap-in-numbers-no-index": "00002-of-00003",
		"empty-weight-map": "weight_map", "non-string-shard": `"a.w": weight_map`,
	} {
		s, err := Find(filepath.Join("../../testdata/set", name), Options{})
		switch {
		case says == "" && (err != nil || len(s.Files) != 2):
			t.Errorf("%s: %v, %v", name, s, err)
		case says != "" && (err == nil || !strings.Contains(err.Error(), says)):
			t.Errorf("%s: %v does not say %q", name, err, says)
		}
	}
}
