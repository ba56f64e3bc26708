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

// A clone without git-lfs has a pointer where the data should be, and a small tensor fits into it.
func TestPointerIsNoExternalData(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../testdata/cases/ox-002-external")); err != nil {
		t.Fatal(err)
	}
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("4d", 32) + "\nsize 12345\n"
	for _, test := range []struct {
		data string
		want string // in the refusal; empty where the model is opened
	}{
		{pointer + strings.Repeat(" ", 512), "w.bin: this is a Git LFS pointer"},
		{strings.Repeat("text", 200), ""},
		{pointer + strings.Repeat(" ", 5000), ""},
	} {
		if err := os.WriteFile(filepath.Join(dir, "w.bin"), []byte(test.data), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := format.Open(filepath.Join(dir, "model.onnx"), format.Options{})
		if err == nil {
			c.Close()
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.20q: %v, want %q", test.data, err, test.want)
		}
	}
}
