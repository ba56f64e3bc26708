package store

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weightfs/format"
	"weightfs/format/set"
)

// An opener opens nothing: what it gives shows the place, and it keeps count.
type opener struct {
	mu     sync.Mutex
	opened []string
	fail   error
}

func (o *opener) open(p Place, inoBase, gen uint64) (format.Dir, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.opened = append(o.opened, filepath.Base(p.Path))
	if _, err := p.Find(set.Options{}); err != nil {
		return nil, err
	}
	if o.fail != nil {
		return nil, o.fail
	}
	st := format.Stat{Ino: inoBase + 1, Gen: gen, Mode: os.ModeDir | 0o555}
	text := []byte(p.Display)
	file := &textFile{format.Stat{Ino: inoBase + 2, Gen: gen, Mode: 0o444, Size: int64(len(text))}, text}
	return &textDir{st, "place.txt", file}, nil
}

func library(t testing.TB, dir string, o *opener) *Library {
	t.Helper()
	l, err := NewLibrary(dir, set.Options{}, o.open)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// at walks to a node.
func at(t testing.TB, l *Library, path string) format.Node {
	t.Helper()
	n, err := format.Lookup(l.Root(), path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return n
}

func names(d format.Dir) []string {
	var out []string
	list := d.List()
	for i := range list.Len() {
		out = append(out, list.At(i).Name)
	}
	return out
}

// walk lists every checkpoint, by its path, and directories that hold none with a slash.
func walk(t testing.TB, l *Library) []string {
	var out []string
	var down func(d format.Dir, path string)
	down = func(d format.Dir, path string) {
		list := d.List()
		if list.Len() == 0 && path != "" {
			out = append(out, path+"/")
		}
		for i := range list.Len() {
			e := list.At(i)
			n, err := d.Lookup(e.Name)
			if err != nil {
				t.Fatalf("%s/%s: %v", path, e.Name, err)
			}
			if n.Stat().Ino != e.Ino {
				t.Errorf("%s/%s: inode %d listed, %d looked up", path, e.Name, e.Ino, n.Stat().Ino)
			}
			below := strings.TrimPrefix(path+"/"+e.Name, "/")
			switch n := n.(type) {
			case *generation:
				out = append(out, below)
			case *textFile:
				if below != readmeName {
					t.Errorf("%s is a file", below)
				}
			default:
				down(n.(format.Dir), below)
			}
		}
	}
	down(l.Root(), "")
	return out
}

func read(t testing.TB, n format.Node) string {
	t.Helper()
	f, ok := n.(format.File)
	if !ok {
		t.Fatalf("%T", n)
	}
	c, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, c.Size())
	if _, err := (format.ContentReader{Content: c}).ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestLibrary(t *testing.T) {
	index := "model.safetensors.index.json=" + `{"weight_map":{"a":"m-00001-of-00001.safetensors"}}`
	for name, c := range map[string]struct {
		tree, want []string
	}{
		"files": {[]string{"b10.safetensors", "b2.safetensors", "c.gguf", "x.txt", ".hidden.gguf", "optimizer.pt"},
			[]string{"b2.safetensors", "b10.safetensors", "c.gguf"}},
		"folders": {[]string{"loras/a.safetensors", "loras/b.safetensors", "vae/v.pt", "text/readme.md", "deep/er/m.gguf", "deep/er/n.gguf", "hollow/x/y.txt"},
			[]string{"deep/er/m.gguf", "deep/er/n.gguf", "hollow/", "loras/a.safetensors", "loras/b.safetensors", "vae"}},
		"training run": {[]string{"checkpoint-500/model.safetensors", "checkpoint-1000/" + index, "checkpoint-1000/m-00001-of-00001.safetensors", "checkpoint-1000/optimizer.pt", "model.safetensors", "runs/events.1"},
			[]string{"checkpoint-500", "checkpoint-1000", "model.safetensors"}},
		"adapters": {[]string{"one/adapter_model.safetensors", "one/adapter_config.json", "two/adapter_model.bin"}, []string{"one", "two"}},
		"pipeline": {[]string{"model_index.json", "unet/diffusion_pytorch_model.safetensors", "vae/diffusion_pytorch_model.safetensors", "scheduler/s.json", "all.safetensors"},
			[]string{"all.safetensors", "unet", "vae"}},
		"split sets": {[]string{"q4-00001-of-00002.gguf", "q4-00002-of-00002.gguf", "q8.gguf", "lost-00002-of-00002.gguf"},
			[]string{"lost-00002-of-00002.gguf", "q4-00001-of-00002.gguf", "q8.gguf"}},
		"indexes": {[]string{"a.safetensors.index.json", "a-00001-of-00001.safetensors", "b.safetensors.index.json", "b-00001-of-00001.safetensors"},
			[]string{"a.safetensors.index.json", "b.safetensors.index.json"}},
		"links": {[]string{"m/a.safetensors", "m/b.safetensors", "m/up->..", "m/self->.", "n->m"},
			[]string{"m/a.safetensors", "m/b.safetensors", "n/a.safetensors", "n/b.safetensors"}},
		"hub cache": {[]string{
			"models--org--one/refs/main=" + commA, "models--org--one/snapshots/" + commA + "/model.safetensors", "models--org--one/snapshots/" + commB + "/model.safetensors",
			"models--org--one/refs/v2=" + commC, "models--org--one/snapshots/" + commC + "/model.safetensors",
			"models--org--quants/refs/main=" + commA, "models--org--quants/snapshots/" + commA + "/q4.gguf", "models--org--quants/snapshots/" + commA + "/q8.gguf",
			"models--org--tokenizer/refs/main=" + commA, "models--org--tokenizer/snapshots/" + commA + "/tokenizer.json",
			"models--gpt2/snapshots/" + commB + "/model.safetensors", "datasets--org--data/snapshots/" + commA + "/x.npy", "version.txt=1",
		}, []string{"gpt2", "org/one", "org/one@bbbb56789012", "org/one@v2", "org/quants/q4.gguf", "org/quants/q8.gguf"}},
		"hub cache below": {[]string{"hub/models--org--one/refs/main=" + commA, "hub/models--org--one/snapshots/" + commA + "/model.safetensors", "x.gguf"},
			[]string{"hub/org/one", "x.gguf"}},
		"ollama": {[]string{"blobs/sha256-" + hexA, "manifests/registry.ollama.ai/library/llama/latest=" + layers("model", "sha256:"+hexA),
			"manifests/registry.ollama.ai/library/llama/8b", "manifests/registry.ollama.ai/me/x/latest", "manifests/hf.co/org/m/Q4", "manifests-v2/ollama.com/library/llama/latest", "manifests-v2/ollama.com/library/new/latest"},
			[]string{"hf.co/org/m/Q4", "library/llama/8b", "library/llama/latest", "library/new/latest", "me/x/latest"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := new(opener)
			l := library(t, tree(t, c.tree...), o)
			got := walk(t, l)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if len(o.opened) != 0 {
				t.Errorf("listing opened %q", o.opened)
			}
		})
	}
}

func TestLibraryOfNothing(t *testing.T) {
	for _, dir := range []string{tree(t, "a.txt", "b/c/d.txt"), tree(t, "models--a--b/blobs/x", "models--a--b/snapshots/"), tree(t)} {
		if _, err := NewLibrary(dir, set.Options{}, nil); !errors.Is(err, set.ErrNone) {
			t.Errorf("%v", err)
		}
	}
	if _, err := NewLibrary("/no/where", set.Options{}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestLibraryWarns(t *testing.T) {
	l := library(t, tree(t, "a.gguf", "b.gguf", "notes.txt", "optimizer.pt"), new(opener))
	if diff := cmp.Diff([]string{"left out: notes.txt, optimizer.pt"}, l.Warnings()); diff != "" {
		t.Error(diff)
	}
}

// A directory that is one checkpoint among many hides what is below it: nothing told of that.
func TestLibraryWarnsOfWhatACheckpointHides(t *testing.T) {
	const what = "in directories below these are more checkpoints, which are not shown (--many of one of them shows its own): "
	for want, specs := range map[string][]string{
		what + "run":         {"run/a.pt=PK\x03\x04", "run/step1/pytorch_model.bin", "x.gguf", "y.gguf"},
		what + "a/out, b/o2": {"a/out/model.safetensors", "a/out/checkpoint-5/model.safetensors", "b/o2/model.safetensors", "b/o2/x/y/z.gguf", "c/model.safetensors", "c/runs/log.txt"},
		"":                   {"models--o--m/snapshots/" + commA + "/model.safetensors", "models--o--m/snapshots/" + commA + "/onnx/model.onnx", "models--o--m/refs/main=" + commA},
	} {
		got := library(t, tree(t, specs...), new(opener)).Warnings()
		if strings.Join(got, "; ") != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestACheckpointIsOpenedWhenItIsEntered(t *testing.T) {
	o := new(opener)
	l := library(t, tree(t, "a.gguf", "b.gguf"), o)
	a := at(t, l, "a.gguf").(format.Dir)
	if len(o.opened) != 0 {
		t.Fatalf("lookup opened %q", o.opened)
	}
	if !strings.HasSuffix(read(t, at(t, l, "a.gguf/place.txt")), "/a.gguf") || len(o.opened) != 1 {
		t.Errorf("opened %q", o.opened)
	}
	names(a)
	at(t, l, "a.gguf/place.txt")
	if len(o.opened) != 1 {
		t.Errorf("opened %q", o.opened)
	}
}

func TestManyEnterOneAtOnce(t *testing.T) {
	o := new(opener)
	l := library(t, tree(t, "a.gguf", "b.gguf"), o)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			if _, err := format.Lookup(l.Root(), []string{"a.gguf", "b.gguf"}[i%2]+"/place.txt"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	slices.Sort(o.opened)
	if diff := cmp.Diff([]string{"a.gguf", "b.gguf"}, o.opened); diff != "" {
		t.Error(diff)
	}
}

func TestInodesDoNotMeet(t *testing.T) {
	l := library(t, tree(t, "a.gguf", "b.gguf", "d/c.gguf", "d/e.gguf", "broken-00001-of-00002.gguf"), new(opener))
	seen := map[uint64]string{}
	var down func(d format.Dir, path string)
	down = func(d format.Dir, path string) {
		if other, twice := seen[d.Stat().Ino]; twice {
			t.Errorf("%s and %s are inode %d", path, other, d.Stat().Ino)
		}
		seen[d.Stat().Ino] = path
		for _, name := range names(d) {
			n, err := d.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			if sub, ok := n.(format.Dir); ok {
				down(sub, path+"/"+name)
				continue
			}
			if other, twice := seen[n.Stat().Ino]; twice {
				t.Errorf("%s/%s and %s are inode %d", path, name, other, n.Stat().Ino)
			}
			seen[n.Stat().Ino] = path + "/" + name
		}
	}
	down(l.Root(), "")
	if len(seen) != 13 {
		t.Errorf("%d nodes: %v", len(seen), seen)
	}
}

func TestABrokenCheckpointSaysWhy(t *testing.T) {
	dir := tree(t, "a.gguf", "m/model.safetensors.index.json={", "s-00001-of-00002.gguf")
	l := library(t, dir, new(opener))
	if got := read(t, at(t, l, "m/ERROR.txt")); !strings.Contains(got, "the JSON ends in the middle") {
		t.Error(got)
	}
	lost := at(t, l, "s-00001-of-00002.gguf")
	if got := read(t, at(t, l, "s-00001-of-00002.gguf/ERROR.txt")); !strings.Contains(got, "s-00002-of-00002.gguf") {
		t.Error(got)
	}
	if _, err := format.Lookup(l.Root(), "m/raw"); !errors.Is(err, iofs.ErrNotExist) {
		t.Error(err)
	}
	grow(t, dir, "s-00002-of-00002.gguf")
	mended := at(t, l, "s-00001-of-00002.gguf")
	if lost.Stat().Gen == mended.Stat().Gen || lost.Stat().Ino != mended.Stat().Ino {
		t.Errorf("%+v became %+v", lost.Stat(), mended.Stat())
	}
	at(t, l, "s-00001-of-00002.gguf/place.txt")
}

// settle makes the next lookup scan again, as half a second would.
func settle(l *Library) {
	l.cached.at = time.Time{}
	for _, f := range l.folders {
		f.scanned = time.Time{}
	}
}

// What a fault quotes of a file was shown to all who may read the directory that has a link to it.
func TestAFaultIsToldToReadersOfTheFile(t *testing.T) {
	dir := tree(t, "m/model.safetensors.index.json")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	index := filepath.Join(dir, "m", "model.safetensors.index.json")
	if err := errors.Join(os.Remove(index), os.Symlink(secret, index), os.Chmod(filepath.Dir(index), 0o755)); err != nil {
		t.Fatal(err)
	}
	l := library(t, dir, new(opener))
	if mode := at(t, l, "m/ERROR.txt").Stat().Mode; mode != 0o400 {
		t.Errorf("%v may read what is told of a private file", mode)
	}
}

func TestChangesAreSeen(t *testing.T) {
	dir := tree(t, "a.gguf=1", "m/model.safetensors=1", "m/config.json=1")
	o := new(opener)
	l := library(t, dir, o)
	gen := func(path string) uint64 {
		t.Helper()
		at(t, l, path+"/place.txt")
		return at(t, l, path).Stat().Gen
	}
	for _, step := range []struct {
		what   string
		change func()
		a, m   uint64
	}{
		{"nothing", func() {}, 0, 0},
		{"content", func() { grow(t, dir, "a.gguf=12") }, 1, 0},
		{"replaced", func() {
			grow(t, dir, "new=1")
			if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "m/model.safetensors")); err != nil {
				t.Fatal(err)
			}
		}, 1, 1},
		{"side file", func() { grow(t, dir, "m/config.json=12") }, 1, 2},
		{"another side file", func() { grow(t, dir, "m/tokenizer.json=1") }, 1, 3},
		{"what is not shown", func() { grow(t, dir, "m/.lock=1", "m/x.incomplete=1") }, 1, 3},
		{"another kind of set", func() { grow(t, dir, `m/model.safetensors.index.json={"weight_map":{"a":"model.safetensors"}}`) }, 1, 4},
	} {
		step.change()
		settle(l)
		if a, m := gen("a.gguf"), gen("m"); a != step.a || m != step.m {
			t.Errorf("%s: generations %d and %d, want %d and %d", step.what, a, m, step.a, step.m)
		}
	}
	opened := len(o.opened)
	gen("a.gguf")
	if len(o.opened) != opened {
		t.Error("opened without a change")
	}
}

func TestNamesComeAndGo(t *testing.T) {
	dir := tree(t, "a.gguf", "b.gguf")
	l := library(t, dir, new(opener))
	old := at(t, l, "a.gguf").(format.Dir)
	names(old)
	if err := os.Remove(filepath.Join(dir, "a.gguf")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Root().Lookup("a.gguf"); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("at once: %v", err)
	}
	grow(t, dir, "d/c.gguf", "d/e.gguf")
	settle(l)
	if diff := cmp.Diff([]string{readmeName, "b.gguf", "d"}, names(l.Root())); diff != "" {
		t.Error(diff)
	}
	at(t, l, "d/c.gguf/place.txt")
	if diff := cmp.Diff([]string{"place.txt"}, names(old)); diff != "" {
		t.Errorf("the old state: %s", diff)
	}
	grow(t, dir, "a.gguf=again")
	settle(l)
	if n := at(t, l, "a.gguf"); n.Stat().Gen == old.Stat().Gen {
		t.Error("another file, and the same generation")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	settle(l)
	if got := names(l.Root()); len(got) != 1 || got[0] != readmeName {
		t.Errorf("the directory is gone: %q", got)
	}
}

func TestACheckpointBecomesADirectoryOfMany(t *testing.T) {
	dir := tree(t, "a.gguf", "m/x.gguf")
	l := library(t, dir, new(opener))
	seen := map[format.Stat]bool{}
	note := func(path string) {
		t.Helper()
		at(t, l, path)
		st := at(t, l, "m").Stat()
		st = format.Stat{Ino: st.Ino, Gen: st.Gen}
		if seen[st] {
			t.Errorf("%s: %+v again", path, st)
		}
		seen[st] = true
	}
	note("m/place.txt")
	grow(t, dir, "m/y.gguf")
	settle(l)
	note("m/y.gguf/place.txt")
	if err := os.Remove(filepath.Join(dir, "m/x.gguf")); err != nil {
		t.Fatal(err)
	}
	settle(l)
	note("m/place.txt")
}

func TestMainMovesOn(t *testing.T) {
	dir := tree(t, "models--o--m/refs/main="+commA, "models--o--m/snapshots/"+commA+"/model.safetensors", "models--o--m/snapshots/"+commB+"/model.safetensors")
	l := library(t, dir, new(opener))
	if got := read(t, at(t, l, "o/m/place.txt")); got != "o/m@aaaa56789012" {
		t.Error(got)
	}
	before := at(t, l, "o/m").Stat()
	grow(t, dir, "models--o--m/refs/main="+commB)
	settle(l)
	if got := read(t, at(t, l, "o/m/place.txt")); got != "o/m@bbbb56789012" {
		t.Error(got)
	}
	if after := at(t, l, "o/m").Stat(); after.Gen == before.Gen {
		t.Error("another revision, and the same generation")
	}
	if diff := cmp.Diff([]string{"m", "m@aaaa56789012"}, names(at(t, l, "o").(format.Dir))); diff != "" {
		t.Error(diff)
	}
}

func TestAFailureIsTriedAgain(t *testing.T) {
	o := &opener{fail: errors.New("too many open files")}
	l := library(t, tree(t, "a.gguf", "b.gguf"), o)
	if got := read(t, at(t, l, "a.gguf/ERROR.txt")); got != "too many open files\n" {
		t.Error(got)
	}
	o.fail = nil
	at(t, l, "a.gguf/ERROR.txt")
	at(t, l, "a.gguf").(*generation).since = time.Time{}
	at(t, l, "a.gguf/place.txt")
}

func TestRealCheckpoints(t *testing.T) {
	l, err := NewLibrary("../testdata/set", set.Options{}, func(p Place, inoBase, gen uint64) (format.Dir, error) {
		c, err := format.Open(p.Path, format.Options{InoBase: inoBase, Gen: gen})
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { c.Close() })
		return c.Root(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := at(t, l, "two-shards/raw/a.w.raw"); n.Stat().Size != 8 {
		t.Errorf("%+v", n.Stat())
	}
	if got := read(t, at(t, l, "missing-shard/ERROR.txt")); !strings.Contains(got, "model-00002-of-00002.safetensors") {
		t.Error(got)
	}
}

// BenchmarkList lists 10,000 checkpoints that nothing is known of yet, and looks each up.
func BenchmarkList(b *testing.B) {
	for name, spec := range map[string]string{"files": "lora-%d.safetensors", "directories": "m-%d/model.safetensors", "hub": "models--o--m%d/snapshots/" + commA + "/model.safetensors"} {
		b.Run(name, func(b *testing.B) {
			var specs []string
			for i := range 10_000 {
				specs = append(specs, fmt.Sprintf(spec, i))
			}
			l := library(b, tree(b, specs...), new(opener))
			d := l.Root()
			if name == "hub" {
				d = at(b, l, "o").(format.Dir)
			}
			for b.Loop() {
				settle(l)
				l.kinds.kinds = nil
				list := d.List()
				for i := range list.Len() {
					if _, err := d.Lookup(list.At(i).Name); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// Directories that lead to each other by links made a tree without end, or of the whole disk.
func TestLinksLeadNeitherUpNorInCircles(t *testing.T) {
	top := t.TempDir()
	lib := filepath.Join(top, "lib")
	for _, d := range []string{"lib/a", "lib/b", "elsewhere/deep"} {
		if err := os.MkdirAll(filepath.Join(top, d), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"x.safetensors", "y.safetensors"} {
			if err := os.WriteFile(filepath.Join(top, d, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for link, to := range map[string]string{
		"lib/self": ".", "lib/a/up": "../..", "lib/a/b": "../b", "lib/b/a": "../a", "lib/out": "../elsewhere", "elsewhere/back": "../lib/a",
	} {
		if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	var found []string
	library(t, lib, &opener{}).Walk(func(f Found) {
		if strings.HasSuffix(f.Name, "/x.safetensors") {
			found = append(found, f.Name)
		}
	})
	want := []string{"a/b/x.safetensors", "a/x.safetensors", "b/a/x.safetensors", "b/x.safetensors", "out/deep/x.safetensors"}
	slices.Sort(found)
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
}
