package numpy

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(testdata, "savez.npz"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := Unchecked(bytes.NewReader(file), int64(len(file)))
	if err != nil || len(list) != 7 {
		t.Fatal(list, err)
	}
	for _, f := range list {
		read := 0
		if fault := Check(f, func(n int) { read += n }); fault != nil || read != int(f.UncompressedSize64) {
			t.Errorf("%s: %v, %d bytes read", f.Name, fault, read)
		}
	}
	off, err := list[3].DataOffset()
	if err != nil {
		t.Fatal(err)
	}
	file[off+100] ^= 1
	for i, f := range list {
		fault := Check(f, func(int) {})
		if (fault != nil) != (i == 3) || fault != nil && fault.Off != off {
			t.Errorf("%s: %v", f.Name, fault)
		}
	}
}

// A CRC-32 of 0 was taken for none, so that a member with that written over the true one was never wrong.
func TestCheckOfAnErasedSum(t *testing.T) {
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		var file bytes.Buffer
		w := zip.NewWriter(&file)
		m, err := w.CreateRaw(&zip.FileHeader{Name: "a.npy", Method: method, CompressedSize64: 5, UncompressedSize64: 5})
		if err != nil {
			t.Fatal(err)
		}
		content := []byte("12345")
		if method == zip.Deflate {
			content = []byte{0x4b, 0x4c, 0x04, 0x02, 0} // aaaaa
		}
		m.Write(content)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		list, err := Unchecked(bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		if fault := Check(list[0], func(int) {}); fault == nil || !strings.Contains(fault.Error(), "its CRC-32 is not 00000000") {
			t.Errorf("method %d: %v", method, fault)
		}
	}
}
