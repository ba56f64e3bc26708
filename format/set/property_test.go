package set

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// vocabulary is names that meet in real directories, in every combination.
var vocabulary = []string{
	"model.safetensors", "adapter_model.safetensors", "a.safetensors", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
	"x-00001-of-00001.safetensors", "model.safetensors.index.json", "model.fp16.safetensors.index.json", "pytorch_model.bin", "w.bin",
	"pytorch_model.bin.index.json", "optimizer.pt", "n.pth", "consolidated.00.pth", "consolidated.01.pth", "m.gguf", "m-1-of-2.gguf", "m-2-of-2.gguf",
	"y.onnx", "z.npz", "config.json", "README.md", "model_index.json", "unet/model.safetensors", "d/x.txt", "line\nbreak.gguf", ".hidden",
}

func TestAnyDirectory(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		names := rapid.SliceOfNDistinct(rapid.SampledFrom(vocabulary), 0, 8, rapid.ID).Draw(t, "names")
		for _, name := range names {
			content := ""
			if isIndex(name) {
				content = weightMap(rapid.SampledFrom(vocabulary).Draw(t, "file"))
			}
			path := filepath.Join(dir, name)
			os.Mkdir(filepath.Dir(path), 0o755)
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		checkFind(t, dir)
		look, err := Look(dir)
		if err != nil {
			t.Fatal(err)
		}
		if look.Choice != "" && !slices.Contains(look.Candidates, look.Choice) {
			t.Fatalf("%q is chosen and no candidate of %q", look.Choice, look.Candidates)
		}
		for _, name := range append(names, look.Candidates...) {
			checkFind(t, filepath.Join(dir, name))
		}
	})
}

func checkFind(t *rapid.T, path string) {
	for _, partial := range []bool{false, true} {
		s, err := Find(path, Options{Partial: partial})
		if (s == nil) == (err == nil) {
			t.Fatalf("%s: %v and %v", path, s, err)
		}
		if err != nil {
			if slices.Contains([]byte(err.Error()), '\n') {
				t.Fatalf("%q has more than one line", err)
			}
			continue
		}
		if len(s.Files) == 0 || s.Stem == "" || s.Name == "" || !partial && len(s.Missing) > 0 {
			t.Fatalf("%s: %+v", path, s)
		}
		for i, name := range s.Files {
			if slices.Contains(s.Files[:i], name) || slices.Contains(s.Side, name) || slices.Contains(s.Missing, name) {
				t.Fatalf("%s: %q is there twice in %+v", path, name, s)
			}
			if _, err := os.Stat(s.Path(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
