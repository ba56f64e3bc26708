package gguf

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"weightfs/format/tensor"
)

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"*.gguf", "*/*.gguf"} {
		names, err := filepath.Glob(filepath.Join(testdata, pattern))
		if err != nil || len(names) == 0 {
			f.Fatal("no seeds", err)
		}
		for _, name := range names {
			file, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(file)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		before := allocated()
		h, err := Parse(bytes.NewReader(file), int64(len(file)))
		if n := allocated() - before; n > 1<<20+64*uint64(len(file)) {
			t.Errorf("%d bytes allocated for a file of %d", n, len(file))
		}
		if err != nil {
			if h != nil {
				t.Error("a header beside an error")
			}
			return
		}
		checkInvariants(t, h, int64(len(file)))
		again, err := Parse(bytes.NewReader(file), int64(len(file)))
		if err != nil || !bytes.Equal(tensor.AppendJSON(nil, h.Meta), tensor.AppendJSON(nil, again.Meta)) || !reflect.DeepEqual(h.Tensors, again.Tensors) {
			t.Errorf("parsed twice: %v", err)
		}
	})
}

func checkInvariants(t *testing.T, h *tensor.Header, size int64) {
	names := make(map[string]bool)
	for _, info := range h.Tensors {
		if e := info.Extent; e.Off < 0 || e.Len < 0 || e.Off > size || e.Len > size-e.Off {
			t.Errorf("%q: extent %+v of a file of %d", info.Name, e, size)
		}
		if want, err := info.DType.Size(info.Shape, false); err != nil || want != info.Bytes || info.Extent.Len != info.Bytes {
			t.Errorf("%q: %d bytes, want %d (%v)", info.Name, info.Bytes, want, err)
		}
		if names[info.Name] {
			t.Errorf("%q twice", info.Name)
		}
		names[info.Name] = true
	}
}
