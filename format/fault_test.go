package format

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weightfs/digest"
	"weightfs/format/tensor"
)

// What was wrong with a deflated tensor was told without its name and its file.
func TestFaultNamesTensorAndFileOnce(t *testing.T) {
	file, err := os.ReadFile("../testdata/numpy/compressed.npz")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "damaged.npz")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	c := openTest(t, path, Options{})
	info := c.Tensor(0).Info
	if info.Layout == nil || info.Layout.Pack != tensor.Deflate {
		t.Fatalf("%q is not deflated", info.Name)
	}
	// Without another size or time: the parser could have met it.
	damaged := bytes.Clone(file)
	copy(damaged[info.Extent.Off+info.Extent.Len/2:], "\xff\xff\xff\xff\xff\xff\xff\xff")
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, werr := f.WriteAt(damaged, 0)
	if err := errors.Join(werr, f.Close(), os.Chtimes(path, st.ModTime(), st.ModTime())); err != nil {
		t.Fatal(err)
	}
	check := func(what string, err error) {
		t.Helper()
		if err == nil || strings.Count(err.Error(), path) != 1 || strings.Count(err.Error(), "tensor ") != 1 || !strings.Contains(err.Error(), info.Name) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, view := range []string{"raw/" + c.Tensor(0).Path + ".raw", "npy/" + c.Tensor(0).Path + ".npy", "stats/" + c.Tensor(0).Path + ".json", "assembled/model.safetensors", "SHA256SUMS"} {
		n, err := Lookup(c.Root(), view)
		if err != nil {
			t.Fatal(err)
		}
		content, err := n.(File).Open()
		if err != nil {
			t.Fatal(err)
		}
		_, err = ContentReader{content}.ReadAt(make([]byte, content.Size()), 0)
		check(view, err)
	}
	_, err = c.Digest(0, digest.Hash)
	check("Digest", err)
	check("Fault of a fault", c.Fault(0, err))
	if err := c.Fault(0, nil); err != nil {
		t.Error(err)
	}
}
