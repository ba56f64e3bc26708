package format_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weightfs/format"
)

// What an index does not name is shown, as the libraries show it, and not without a word.
func TestTensorsThatTheIndexLacks(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../testdata/cases/sh-001-two-shards")); err != nil {
		t.Fatal(err)
	}
	index := filepath.Join(dir, "model.safetensors.index.json")
	text := `{"weight_map": {"a.w": "model-00001-of-00002.safetensors", "x": "model-00002-of-00002.safetensors"}}`
	if err := os.WriteFile(index, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := format.Open(index, format.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Len() != 3 {
		t.Errorf("%d tensors", c.Len())
	}
	if said := strings.Join(c.Warnings, "\n"); len(c.Warnings) != 2 || !strings.Contains(said, "does not name") || !strings.Contains(said, "a.b, b.w") {
		t.Errorf("%s", said)
	}
}
