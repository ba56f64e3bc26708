package format_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weightfs/format"
)

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
