package format

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A folder that something was written to beside the model was once parsed anew each time.
func TestIndexOfAChangedDirectory(t *testing.T) {
	for name, test := range map[string]struct {
		hit    bool
		change func(dir string) error
	}{
		"nothing":         {true, func(string) error { return nil }},
		"notes added":     {true, write("notes.txt", "x")},
		"log grows":       {true, write("train.log", "more of it")},
		"log removed":     {true, remove("train.log")},
		"subdirectory":    {true, func(dir string) error { return os.Mkdir(filepath.Join(dir, "logs"), 0o755) }},
		"download begins": {true, write("x.gguf.part", "x")},
		"other model":     {true, write("other.safetensors", "x")},
		"other format":    {true, write("other.gguf", "x")},
		"config added":    {false, write("quantize_config.json", "{}")},
		"config changed":  {false, write("config.json", `{"a": 1}`)},
		"config removed":  {false, remove("config.json")},
		"shard changed":   {false, func(dir string) error { return os.Chmod(filepath.Join(dir, "b.safetensors"), 0o600) }},
		"shard renamed": {false, func(dir string) error {
			return os.Rename(filepath.Join(dir, "b.safetensors"), filepath.Join(dir, "c.safetensors"))
		}},
		"shard through a link": {false, func(dir string) error {
			b := filepath.Join(dir, "b.safetensors")
			if err := os.Rename(b, filepath.Join(dir, "b.moved")); err != nil {
				return err
			}
			return os.Symlink("b.moved", b)
		}},
		"index removed":        {false, remove("model.safetensors.index.json")},
		"index rewritten":      {false, write("model.safetensors.index.json", `{"weight_map": {"a": "a.safetensors"}}`)},
		"another index":        {true, write("model.fp16.safetensors.index.json", `{"weight_map": {"a": "a.safetensors"}}`)},
		"index of a component": {false, write("diffusion_pytorch_model.safetensors.index.json", `{"weight_map": {"a": "a.safetensors"}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			dir, opt := keptSet(t)
			openTest(t, dir, opt).Keep()
			if err := test.change(dir); err != nil {
				t.Fatal(err)
			}
			settle()
			for _, source := range []string{"", "a.safetensors"} {
				again := equalToFresh(t, filepath.Join(dir, source), opt)
				if source == "" && again != test.hit {
					t.Errorf("from the index: %t, want %t", again, test.hit)
				}
			}
		})
	}
}

// What is added may be what a loader takes, and what was parsed is there all the same.
func TestIndexOfAnotherChoice(t *testing.T) {
	shard := func(name string) func(dir string) error {
		return func(dir string) error {
			writeSafetensors(t, filepath.Join(dir, name), nil, testTensor{filepath.Base(name), "F32", []uint64{1}, pattern(4, 1)})
			return nil
		}
	}
	const snapshot = "models--o--m/snapshots/1"
	for name, test := range map[string]struct {
		source string
		before []func(dir string) error
		change func(dir string) error
	}{
		"standard name": {"", []func(string) error{shard("x.safetensors")}, shard("model.safetensors")},
		"standard index": {"", []func(string) error{shard("x.safetensors"), write("x.safetensors.index.json", `{"weight_map": {"x.safetensors": "x.safetensors"}}`)},
			write("model.safetensors.index.json", `{"weight_map": {"y": "x.safetensors"}}`)},
		"first index": {"x.safetensors", []func(string) error{shard("x.safetensors")}, write("x.safetensors.index.json", `{"weight_map": {"y": "x.safetensors"}}`)},
		"pipeline":    {"", []func(string) error{shard("x.safetensors"), shard("unet/model.safetensors")}, write("model_index.json", "{}")},
		"another blob": {snapshot, []func(string) error{shard("models--o--m/blobs/a"), shard("models--o--m/blobs/b"), shard(snapshot + "/y.bin"), write(snapshot+"/x.safetensors", "../../blobs/a")},
			write(snapshot+"/x.safetensors", "../../blobs/b")},
		"another blob by a new file": {snapshot, []func(string) error{shard("models--o--m/blobs/a"), shard("models--o--m/blobs/b"), shard(snapshot + "/y.bin"), write(snapshot+"/x.safetensors", "../../blobs/a")},
			func(dir string) error {
				return errors.Join(write("new", "../../blobs/b")(dir), os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, snapshot, "x.safetensors")))
			}},
	} {
		t.Run(name, func(t *testing.T) {
			_, opt := keptSample(t)
			dir := t.TempDir()
			for _, step := range test.before {
				if err := step(dir); err != nil {
					t.Fatal(err)
				}
			}
			settle()
			source := filepath.Join(dir, test.source)
			openTest(t, source, opt).Keep()
			if !openTest(t, source, opt).FromIndex {
				t.Fatal("no index was kept")
			}
			if err := test.change(dir); err != nil {
				t.Fatal(err)
			}
			settle()
			if equalToFresh(t, source, opt) {
				t.Error("the old index was used")
			}
		})
	}
}

// keptSet is a sharded model in a cache's directory of the test's.
func keptSet(t *testing.T) (dir string, opt Options) {
	_, opt = keptSample(t)
	dir = filepath.Join(t.TempDir(), "m")
	for _, name := range []string{"a", "b"} {
		writeSafetensors(t, filepath.Join(dir, name+".safetensors"), nil, testTensor{name, "F32", []uint64{1}, pattern(4, 1)})
	}
	for name, text := range map[string]string{"config.json": "{}", "train.log": "x",
		"model.safetensors.index.json": `{"weight_map": {"a": "a.safetensors", "b": "b.safetensors", "c": "b.safetensors"}}`} {
		if err := write(name, text)(dir); err != nil {
			t.Fatal(err)
		}
	}
	settle()
	return dir, opt
}

func write(name, text string) func(dir string) error {
	return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644) }
}

func remove(name string) func(dir string) error {
	return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
}

// equalToFresh opens a source with the index that is kept and without, and tells whether one was used.
func equalToFresh(t *testing.T, source string, opt Options) bool {
	t.Helper()
	c, err := Open(source, opt)
	opt.IndexDir = ""
	fresh, ferr := Open(source, opt)
	if err != nil || ferr != nil {
		if err == nil || ferr == nil || err.Error() != ferr.Error() {
			t.Errorf("with an index kept: %v, without: %v", err, ferr)
		}
		return false
	}
	defer c.Close()
	defer fresh.Close()
	if got, want := described(t, c), described(t, fresh); got != want {
		t.Errorf("with an index kept:\n%s\nwithout:\n%s", got, want)
	}
	if c.FromIndex != (c.Missed == "") {
		t.Errorf("from the index: %t, missed because %q", c.FromIndex, c.Missed)
	}
	return c.FromIndex
}

// described is all of a checkpoint that depends on what was found.
func described(t *testing.T, c *Checkpoint) string {
	t.Helper()
	var side []string
	for i := range c.side {
		side = append(side, c.side[i].name+" "+c.side[i].path)
	}
	text, err := json.MarshalIndent([]any{c.Name, c.Format, c.stem, c.found, c.own, side, c.Warnings,
		string(readNode(t, c, "tensors.json")), string(readNode(t, c, "metadata.json")), listing(c.Root(), "f32"), listing(c.Root(), "assembled")}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func listing(root Dir, name string) (names []string) {
	n, err := root.Lookup(name)
	if err != nil {
		return nil
	}
	l := n.(Dir).List()
	for i := range l.Len() {
		names = append(names, l.At(i).Name)
	}
	return names
}

// A missing shard that came at last was shown by no mount while an index without it was kept: a link in
// the directory stays as it is when its target comes.
func TestIndexWithoutAMissingShardEndsWithIt(t *testing.T) {
	dir, opt := keptSet(t)
	opt.Partial = true
	b := filepath.Join(dir, "b.safetensors")
	away := filepath.Join(t.TempDir(), "b")
	if err := os.Rename(b, away); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(away+".later", b); err != nil {
		t.Fatal(err)
	}
	settle()
	first := openTest(t, dir, opt)
	first.Keep()
	if first.Len() != 1 || !openTest(t, dir, opt).FromIndex {
		t.Fatalf("%d tensors, or no index of them", first.Len())
	}
	if err := os.Rename(away, away+".later"); err != nil {
		t.Fatal(err)
	}
	if equalToFresh(t, dir, opt) {
		t.Error("the index without the shard was used")
	}
}

// Warnings that were added to an open checkpoint are the caller's, who adds them each time.
func TestIndexKeepsItsOwnWarnings(t *testing.T) {
	dir, opt := keptSet(t)
	c := openTest(t, dir, opt)
	want := slices.Clone(c.Warnings)
	c.Warnings = append(c.Warnings, "of the caller")
	c.Keep()
	if again := openTest(t, dir, opt); !again.FromIndex || !slices.Equal(again.Warnings, want) {
		t.Errorf("%q, want %q", again.Warnings, want)
	}
}
