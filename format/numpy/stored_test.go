package numpy

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestCheckStored(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(testdata, "savez.npz"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := Stored(bytes.NewReader(file), int64(len(file)))
	if err != nil || len(list) != 7 {
		t.Fatal(list, err)
	}
	for _, f := range list {
		read := 0
		if fault := CheckStored(f, func(n int) { read += n }); fault != nil || read != int(f.UncompressedSize64) {
			t.Errorf("%s: %v, %d bytes read", f.Name, fault, read)
		}
	}
	off, err := list[3].DataOffset()
	if err != nil {
		t.Fatal(err)
	}
	file[off+100] ^= 1
	for i, f := range list {
		fault := CheckStored(f, func(int) {})
		if (fault != nil) != (i == 3) || fault != nil && fault.Off != off {
			t.Errorf("%s: %v", f.Name, fault)
		}
	}
}
