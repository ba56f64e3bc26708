package format_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weightfs/format"
	"weightfs/format/set"
)

// A part that is of another format than its set made the checkpoint "mixed" without a word.
func TestPartOfAnotherFormat(t *testing.T) {
	split, other := "../testdata/cases/gg-038-split/", "../testdata/cases/st-002-scalars-and-empty/model.safetensors"
	for _, test := range []struct {
		name  string
		files map[string]string // name -> what is copied there
		odd   string
		want  string
	}{
		{"second", map[string]string{"m-00001-of-00002.gguf": split + "m-00001-of-00002.gguf", "m-00002-of-00002.gguf": other},
			"m-00002-of-00002.gguf", "this is safetensors, but m-00001-of-00002.gguf, of the same set, is gguf"},
		{"first", map[string]string{"m-00001-of-00002.gguf": other, "m-00002-of-00002.gguf": split + "m-00002-of-00002.gguf"},
			"m-00001-of-00002.gguf", "this is safetensors, but m-00002-of-00002.gguf, of the same set, is gguf"},
		{"torch", map[string]string{"pytorch_model-00001-of-00002.bin": "../testdata/cases/pt-002-views-of-one-storage/model.pt", "pytorch_model-00002-of-00002.bin": other},
			"pytorch_model-00002-of-00002.bin", "this is safetensors, but pytorch_model-00001-of-00002.bin, of the same set, is pytorch"},
	} {
		dir := t.TempDir()
		for name, from := range test.files {
			b, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		c, err := format.Open(dir, format.Options{})
		if err == nil {
			c.Close()
			t.Fatalf("%s: opened as %s", test.name, c.Format)
		}
		fault := filepath.Join(dir, test.odd) + ": " + test.want
		if !strings.Contains(err.Error(), fault) || !strings.Contains(err.Error(), "--lenient") {
			t.Errorf("%s: %v, want %q", test.name, err, fault)
		}
		if c, err = format.Open(dir, format.Options{Lenient: true}); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(c.Warnings, fault) {
			t.Errorf("%s: warnings %q", test.name, c.Warnings)
		}
		c.Close()
		s, err := set.Find(dir, set.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if faults := format.Check(s); len(faults) != 1 || faults[0].Error() != fault {
			t.Errorf("%s: Check gives %v", test.name, faults)
		}
	}
}
