package format_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weightfs/format"
)

// A part of a split set by itself, or in a set that is smaller than it says, names what is there and what
// is missing.
func TestSplitNamesItsFiles(t *testing.T) {
	b, err := os.ReadFile("../testdata/cases/gg-038-split/m-00002-of-00002.gguf")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "second.gguf")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := format.Open(path, format.Options{})
	if err == nil {
		c.Close()
		t.Fatal("opened")
	}
	if want := "split.count is 2, but 1 file is there: second.gguf; missing: part 1"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
