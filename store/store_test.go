package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weightfs/format"
	"weightfs/format/set"
	"weightfs/format/tensor"
)

// tree makes files below a directory: NAME=CONTENT, NAME->TARGET for a link, NAME/ for a directory.
func tree(t testing.TB, specs ...string) string {
	t.Helper()
	dir := t.TempDir()
	grow(t, dir, specs...)
	return dir
}

func grow(t testing.TB, dir string, specs ...string) {
	t.Helper()
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
}

func environment(home string, vars map[string]string) Env {
	return Env{Getenv: func(name string) string { return vars[name] }, Home: home, Shared: filepath.Join(home, "shared")}
}

const (
	hub   = ".cache/huggingface/hub/"
	commA = "aaaa567890123456789012345678901234567890"
	commB = "bbbb567890123456789012345678901234567890"
	commC = "bbbbc67890123456789012345678901234567890"
)

// cache has one model of several revisions, one of two and no main, one of a single file.
func cache(t *testing.T) string {
	return tree(t,
		hub+"models--org--name/blobs/1=w",
		hub+"models--org--name/refs/main="+commA+"\n",
		hub+"models--org--name/refs/v1.0="+commB,
		hub+"models--org--name/refs/a/b="+commC,
		hub+"models--org--name/refs/refs/pr/7="+commB,
		hub+"models--org--name/refs/gone=cccc567890123456789012345678901234567890",
		hub+"models--org--name/refs/evil=../../../other",
		hub+"models--org--name/snapshots/"+commA+"/model.safetensors->../../blobs/1",
		hub+"models--org--name/snapshots/"+commA+"/sub/x.gguf->../../../blobs/1",
		hub+"models--org--name/snapshots/"+commB+"/model.safetensors->../../blobs/1",
		hub+"models--org--name/snapshots/"+commC+"/model.safetensors->../../blobs/1",
		hub+"models--org--two/blobs/", hub+"models--org--two/snapshots/"+commA+"/", hub+"models--org--two/snapshots/"+commB+"/",
		hub+"models--org--one/blobs/", hub+"models--org--one/snapshots/"+commB+"/",
		hub+"models--org--empty/refs/main="+commA, hub+"models--org--empty/blobs/",
		hub+"models--gpt2/refs/main="+commA, hub+"models--gpt2/snapshots/"+commA+"/",
	)
}

func TestResolveHub(t *testing.T) {
	home := cache(t)
	in := func(repo, commit, path string) string {
		return filepath.Join(home, hub, "models--"+repo, "snapshots", commit, path)
	}
	name := "org--name"
	for source, want := range map[string]Place{
		"hf://org/name":                                  {Path: in(name, commA, ""), Display: "org/name@aaaa56789012"},
		"hf://models/org/name":                           {Path: in(name, commA, ""), Display: "org/name@aaaa56789012"},
		"hf://org/name/":                                 {Path: in(name, commA, ""), Display: "org/name@aaaa56789012"},
		"org/name":                                       {Path: in(name, commA, ""), Display: "org/name@aaaa56789012"},
		"org/name@v1.0":                                  {Path: in(name, commB, ""), Display: "org/name@bbbb56789012"},
		"hf://org/name@main":                             {Path: in(name, commA, ""), Display: "org/name@aaaa56789012"},
		"hf://org/name@a%2Fb":                            {Path: in(name, commC, ""), Display: "org/name@bbbbc6789012"},
		"hf://org/name@refs/pr/7":                        {Path: in(name, commB, ""), Display: "org/name@bbbb56789012"},
		"hf://org/name@refs/pr/7/model.safetensors":      {Path: in(name, commB, "model.safetensors"), Display: "org/name@bbbb56789012/model.safetensors"},
		"hf://org/name@" + commC:                         {Path: in(name, commC, ""), Display: "org/name@bbbbc6789012"},
		"hf://org/name@bbbb5":                            {Path: in(name, commB, ""), Display: "org/name@bbbb56789012"},
		"hf://org/name/sub/x.gguf":                       {Path: in(name, commA, "sub/x.gguf"), Display: "org/name@aaaa56789012/sub/x.gguf"},
		"hf://org/name@v1.0/model.safetensors":           {Path: in(name, commB, "model.safetensors"), Display: "org/name@bbbb56789012/model.safetensors"},
		"https://huggingface.co/org/name":                {Path: in(name, commA, ""), Display: "org/name@aaaa56789012"},
		"huggingface.co/org/name/":                       {Path: in(name, commA, ""), Display: "org/name@aaaa56789012"},
		"https://huggingface.co/org/name/tree/v1.0":      {Path: in(name, commB, ""), Display: "org/name@bbbb56789012"},
		"https://hf.co/org/name/blob/main/sub/x.gguf#L1": {Path: in(name, commA, "sub/x.gguf"), Display: "org/name@aaaa56789012/sub/x.gguf"},
		"https://huggingface.co/org/name/resolve/main/sub/x.gguf?download=true": {Path: in(name, commA, "sub/x.gguf"), Display: "org/name@aaaa56789012/sub/x.gguf"},
		"hf://org/one": {Path: in("org--one", commB, ""), Display: "org/one@bbbb56789012"},
		"hf://gpt2":    {Path: in("gpt2", commA, ""), Display: "gpt2@aaaa56789012"},
		filepath.Join(home, hub, "models--org--name"): {Path: in(name, commA, ""), Display: "org/name@aaaa56789012"},
		in(name, commB, ""):                           {Path: in(name, commB, ""), Display: in(name, commB, "")},
	} {
		got, err := Resolve(source, environment(home, nil))
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", source, diff)
		}
	}
}

func TestHubCacheDirectory(t *testing.T) {
	home := "/home/u"
	for want, vars := range map[string]map[string]string{
		"/a":                             {"HF_HUB_CACHE": "/a", "HUGGINGFACE_HUB_CACHE": "/b", "HF_HOME": "/c"},
		"/b":                             {"HUGGINGFACE_HUB_CACHE": "/b", "HF_HOME": "/c"},
		"/c/hub":                         {"HF_HOME": "/c"},
		"/home/u/c/hub":                  {"HF_HOME": "~/c"},
		"/x/huggingface/hub":             {"XDG_CACHE_HOME": "/x"},
		"/home/u/.cache/huggingface/hub": nil,
	} {
		if got := environment(home, vars).HubCache(); got != want {
			t.Errorf("%v: %s, want %s", vars, got, want)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	home := cache(t)
	var notFound *NotFoundError
	var ambiguous *AmbiguousError
	for source, c := range map[string]struct {
		as   any
		says []string
	}{
		"hf://org/other":                      {&notFound, []string{"not in the hub's cache", hub[:len(hub)-1], "hf download org/other"}},
		"org/other":                           {&notFound, []string{"no such file", "not in the hub's cache"}},
		"org/other.safetensors":               {&notFound, []string{"no such file"}},
		"nothing":                             {&notFound, []string{"no such file"}},
		"/no/where":                           {&notFound, []string{"no such file"}},
		"":                                    {&notFound, []string{"no such file"}},
		"hf://Org/Name":                       {&notFound, []string{"there is org/name"}},
		"hf://org/two":                        {&ambiguous, []string{"hf://org/two@aaaa56789012, hf://org/two@bbbb56789012"}},
		"hf://org/name@bbbb":                  {&ambiguous, []string{"begin so"}},
		"hf://org/name@bbb":                   {&notFound, []string{`"bbb"`}},
		"hf://org/name@gone":                  {&notFound, []string{"gone is commit cccc567", "there is hf://org/name@aaaa"}},
		"hf://org/name@evil":                  {&notFound, []string{`refs/evil holds "../../../other", which is no commit`, "there is hf://org/name@aaaa"}},
		"hf://org/name@a":                     {&notFound, []string{"refs/a cannot be read", "not a regular file"}},
		"hf://org/name@v1.0%2Fx":              {&notFound, []string{`"v1.0/x" is not in the cache`}},
		"hf://org/name@..%2F..":               {&notFound, []string{"leaves"}},
		"hf://org/name/../x":                  {&notFound, []string{"leaves"}},
		"hf://org/name/nothing":               {&notFound, []string{"hf download org/name nothing"}},
		"hf://org/empty":                      {&notFound, []string{"not in the cache"}},
		"hf://../../etc":                      {&notFound, []string{"no name of a model"}},
		"hf://":                               {&notFound, []string{"no name of a model"}},
		"hf://datasets/org/name":              {&notFound, []string{"not a model"}},
		"https://huggingface.co/spaces/a/b":   {&notFound, []string{"not a model"}},
		"https://huggingface.co/org/name/x/y": {&notFound, []string{"page"}},
		"ollama:none":                         {&notFound, []string{"ollama pull none:latest", ".ollama/models"}},
		"ollama:../x":                         {&notFound, []string{"no name of a model"}},
		"ollama:a/b/c/d":                      {&notFound, []string{"no name of a model"}},
		"ollama:":                             {&notFound, []string{"no name of a model"}},
	} {
		got, err := Resolve(source, environment(home, nil))
		if err == nil {
			t.Errorf("%s: %+v", source, got)
			continue
		}
		if !errors.As(err, c.as) {
			t.Errorf("%s: %T %v", source, err, err)
		}
		for _, word := range c.says {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %q does not say %q", source, err, word)
			}
		}
	}
}

func TestAPathComesFirst(t *testing.T) {
	t.Chdir(tree(t, "org/name=w"))
	got, err := Resolve("org/name", environment(cache(t), nil))
	if err != nil || got.Path != "org/name" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestHasPrefix(t *testing.T) {
	for source, want := range map[string]bool{"hf://a/b": true, "hf://": true, "ollama:x": true, "https://hf.co/a/b": true, "a/b": false, "mount": false} {
		if HasPrefix(source) != want {
			t.Errorf("%s: %v", source, !want)
		}
	}
}

// A repository's folder may also be found by a link of another name.
func TestRepositoryByAnotherName(t *testing.T) {
	home := cache(t)
	grow(t, home, "m->"+hub+"models--org--name")
	got, err := Resolve(filepath.Join(home, "m"), environment(home, nil))
	if err != nil || got.Display != "m@aaaa56789012" {
		t.Errorf("%+v, %v", got, err)
	}
}

const (
	hexA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	hexB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	hexC = "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
)

func layers(kindsAndDigests ...string) string {
	var b strings.Builder
	b.WriteString(`{"schemaVersion":2,"layers":[`)
	for i := 0; i < len(kindsAndDigests); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"mediaType":"application/vnd.ollama.image.` + kindsAndDigests[i] + `","digest":"` + kindsAndDigests[i+1] + `"}`)
	}
	return b.String() + "]}"
}

func ollamaHome(t *testing.T) string {
	const public = ".ollama/models/manifests/registry.ollama.ai/"
	return tree(t,
		public+"library/llama/latest="+layers("template", "sha256:"+hexC, "model", "sha256:"+hexA, "projector", "sha256:"+hexB),
		public+"library/llama/8b="+layers("model", "sha256:"+hexA),
		public+"me/mine/q4="+layers("model", "sha256:"+hexA),
		".ollama/models/manifests/hf.co/org/name/Q4_K_M="+layers("model", "sha256:"+hexA),
		public+"library/lost/latest="+layers("model", "sha256:"+hexC),
		public+"library/out/latest="+layers("model", "sha256:../../../etc/passwd"),
		public+"library/text/latest="+layers("template", "sha256:"+hexA),
		public+"library/broken/latest={",
		public+"library/tensors/latest="+layers("tensor; name=a.w", "sha256:"+hexA, "json", "sha256:"+hexB),
		".ollama/models/manifests-v2/ollama.com/library/new/latest->../../../../blobs/sha256-"+hexB,
		".ollama/models/blobs/sha256-"+hexA+"=w",
		".ollama/models/blobs/sha256-"+hexB+`={"mediaType":"application/vnd.ollama.manifest.list.v2+json","manifests":[{"runner":"mlx","digest":"sha256:`+hexC+`"},{"runner":"ggml","digest":"sha256:`+strings.Repeat("d", 64)+`"}]}`,
		".ollama/models/blobs/sha256-"+strings.Repeat("d", 64)+"="+layers("model", "sha256:"+hexA),
		".ollama/models/blobs/sha256-"+hexC+"-partial=12",
		"shared/manifests/registry.ollama.ai/library/system/latest="+layers("model", "sha256:"+hexA),
		"shared/blobs/sha256-"+hexA+"=w",
	)
}

func TestResolveOllama(t *testing.T) {
	home := ollamaHome(t)
	blob := func(hex string) string { return filepath.Join(home, ".ollama/models/blobs/sha256-"+hex) }
	for source, want := range map[string]Place{
		"ollama:llama":                 {Path: blob(hexA), Display: "ollama:llama:latest", Warnings: []string{"left out: the model's projector (" + blob(hexB) + ")"}},
		"ollama://llama:8b":            {Path: blob(hexA), Display: "ollama:llama:8b"},
		"ollama:library/llama:8b":      {Path: blob(hexA), Display: "ollama:llama:8b"},
		"ollama:me/mine:q4":            {Path: blob(hexA), Display: "ollama:me/mine:q4"},
		"ollama:hf.co/org/name:Q4_K_M": {Path: blob(hexA), Display: "ollama:hf.co/org/name:Q4_K_M"},
		"ollama:new":                   {Path: blob(hexA), Display: "ollama:new:latest"},
		"ollama:system":                {Path: filepath.Join(home, "shared/blobs/sha256-"+hexA), Display: "ollama:system:latest"},
		"ollama:tensors":               {Path: filepath.Join(home, ".ollama/models/manifests/registry.ollama.ai/library/tensors/latest"), Display: "ollama:tensors:latest", Blobs: []Blob{{blob(hexA), "a.w"}}},
	} {
		got, err := Resolve(source, environment(home, nil))
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", source, diff)
		}
	}
	tensors, _ := Resolve("ollama:tensors", environment(home, nil))
	s, err := tensors.Find(set.Options{})
	if err != nil || len(s.Files) != 1 || s.Path(s.Files[0]) != blob(hexA) || s.Rename(s.Files[0], "data") != "a.w" {
		t.Errorf("%+v, %v", s, err)
	}
	elsewhere := environment(home, map[string]string{"OLLAMA_MODELS": filepath.Join(home, "shared")})
	if _, err := Resolve("ollama:llama", elsewhere); !errors.Is(err, ErrNotFound) {
		t.Errorf("OLLAMA_MODELS is one of several: %v", err)
	}
}

func TestOllamaRefuses(t *testing.T) {
	env := environment(ollamaHome(t), nil)
	_, err := Resolve("ollama:lost", env)
	if fault, ok := errors.AsType[*set.IncompleteError](err); !ok || !strings.Contains(fault.Error(), "-partial, 2 bytes") {
		t.Errorf("%T %v", err, err)
	}
	for name, reason := range map[string]error{"out": tensor.ErrUnsafe, "text": tensor.ErrUnsupported, "broken": tensor.ErrMalformed} {
		if _, err := Resolve("ollama:"+name, env); !errors.Is(err, reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRename(t *testing.T) {
	for _, c := range []struct{ name, key, want string }{
		{"m.w", "m.w", "m.w"},
		{"m.w", "m.w.scale", "m.w.scale"},
		{"m.w", "data", "m.w"},
		{"m.w", "data.scale", "m.w.scale"},
		{"unet/m.w", "data", "unet/m.w"},
		{"unet/m.w", "m.w", "unet/m.w"},
		{"unet/m.w", "m.w.bias", "unet/m.w.bias"},
		{"unet/m.w", "unet/m.w", "unet/m.w"},
		{"m.experts", "m.experts.0.w", "m.experts.0.w"},
		{"m.group", "other.w", "other.w"},
		{"", "x", "x"},
	} {
		if got := (Blob{Name: c.name}).Rename(c.key); got != c.want {
			t.Errorf("%q of %q: %q, want %q", c.key, c.name, got, c.want)
		}
	}
}

// A model that Ollama stores as one file a tensor is opened under the names of its manifest.
func TestOpenTensorsOfOllama(t *testing.T) {
	file := func(key string) string {
		header := `{"` + key + `":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`
		return string(rune(len(header))) + strings.Repeat("\x00", 7) + header + "hi"
	}
	home := tree(t,
		".ollama/models/manifests/registry.ollama.ai/library/t/latest="+layers("tensor; name=\\\"unet/a.w\\\"", "sha256:"+hexA, "tensor; name=b.w", "sha256:"+hexB),
		".ollama/models/blobs/sha256-"+hexA+"="+file("data"), ".ollama/models/blobs/sha256-"+hexB+"="+file("b.w"))
	p, err := Resolve("ollama:t", environment(home, nil))
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Open(format.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, name := range []string{"unet/a.w", "b.w"} {
		if _, ok := c.ByName(name); !ok {
			t.Errorf("no %s", name)
		}
	}
}

// What refs/main holds was passed over without a word where it is no commit.
func TestMainIsNoCommit(t *testing.T) {
	for content, says := range map[string]string{
		"../../x":         `refs/main holds "../../x", which is no commit`,
		"":                `refs/main holds "", which is no commit`,
		"..":              `refs/main holds "..", which is no commit`,
		"<html>\n</html>": `refs/main holds "<html>\n</html>", which is no commit`,
		commA + "\x00":    "which is no commit",
	} {
		dir := tree(t, "models--o--m/blobs/", "models--o--m/refs/main="+content, "models--o--m/snapshots/"+commA+"/model.safetensors")
		repo, env := filepath.Join(dir, "models--o--m"), environment(dir, map[string]string{"HF_HUB_CACHE": dir})
		warned := func(p Place) bool {
			return filepath.Base(p.Path) == commA && len(p.Warnings) == 1 && strings.Contains(p.Warnings[0], says) && strings.HasPrefix(p.Warnings[0], repo+"/refs/main")
		}
		if place, err := Resolve(repo, env); err != nil || !warned(place) {
			t.Errorf("%q: %+v, %v, want the warning %q", content, place, err, says)
		}
		var found []Found
		library(t, dir, &opener{}).Walk(func(f Found) { found = append(found, f) })
		if len(found) != 1 || found[0].Err != nil || found[0].Name != "o/m" || !warned(found[0].Place) {
			t.Errorf("%q among many: %+v, want the warning %q", content, found, says)
		}
		if _, err := Resolve("hf://o/m@main", env); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q, asked for main: %v", content, err)
		}
		grow(t, dir, "models--o--m/snapshots/"+commB+"/model.safetensors")
		if _, err := Resolve(repo, env); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q with two revisions: %v", content, err)
		}
	}
}
