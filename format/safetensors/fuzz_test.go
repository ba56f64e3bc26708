package safetensors

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"weightfs/format/tensor"
)

func FuzzParse(f *testing.F) {
	paths, _ := filepath.Glob(filepath.Join(testdata, "*.safetensors"))
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, header := range []string{`{}`, `{"a":["U8",[],[0,1]],"__metadata__":{"a":"b"}}`,
		`{"\u0061":{"dtype":"X9","shape":[2,0],"data_offsets":[1,1],"x":[-1.5e3,{"y":null}]}}`} {
		f.Add(file(header, 1))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h, err := parseBytes(b)
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(64*len(b)+64<<10); got > limit {
			t.Errorf("allocated %d bytes for a file of %d", got, len(b))
		}
		if err != nil {
			checkError(t, h, err, int64(len(b)))
			return
		}
		checkHeader(t, h, int64(len(b)))
		again, _ := parseBytes(b)
		if !reflect.DeepEqual(h, again) {
			t.Errorf("parsed twice: %+v, then %+v", h, again)
		}
	})
}

func checkError(t *testing.T, h *tensor.Header, err error, size int64) {
	e, ok := errors.AsType[*tensor.FormatError](err)
	if h != nil || !ok || e.Err == nil || e.Off > size || len(e.Error()) > 4096 {
		t.Errorf("header %v, error %v", h, err)
	}
}

// checkHeader asserts what a reader relies on: ranges inside the file, apart from each other, and
// as long as shape and type say.
func checkHeader(t *testing.T, h *tensor.Header, size int64) {
	names := map[string]bool{}
	covered := make([]bool, size)
	for _, i := range h.Tensors {
		if names[i.Name] || i.Name == metadataKey {
			t.Errorf("a second %q", i.Name)
		}
		names[i.Name] = true
		n, err := i.DType.Size(i.Shape, false)
		if err != nil || n != i.Bytes || n != i.Extent.Len || i.Layout != nil || i.File != "" {
			t.Errorf("%+v has size %d, %v", i, n, err)
		}
		if i.Extent.Off < h.DataStart || i.Extent.Len < 0 || i.Extent.Off > size-i.Extent.Len {
			t.Fatalf("%+v lies outside of the %d bytes", i, size)
		}
		for at := i.Extent.Off; at < i.Extent.Off+i.Extent.Len; at++ {
			if covered[at] {
				t.Fatalf("%+v overlaps another", i)
			}
			covered[at] = true
		}
	}
}
