package detect

import (
	"errors"
	"strings"
	"testing"

	"weightfs/format/tensor"
)

func TestUnpackerGoesByTheName(t *testing.T) {
	for name, want := range map[string]string{
		"m.gguf.gz": "gunzip -k", "M.GGUF.GZ": "gunzip -k", "m.zst": "unzstd", "m.tar.zst": "tar -xf", "m.tgz": "tar -xf",
		"m.tar": "tar -xf", "m.zip": "unzip", "m.gguf": "", "gz": "", "models/": "", "m.tar.gz/": "", "": "",
	} {
		if got := Unpacker(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestPackedIsToldFromOtherFaults(t *testing.T) {
	for file, want := range map[string]bool{
		"\x1f\x8b\x08\x00\x00\x00\x00\x00": true, tarOf("m.gguf"): true, zipOf("a/b.txt"): true, "7z\xbc\xaf\x27\x1c....": true,
		"SAFT\x01\x00\x00\x00": false, `{"a": 1}`: false, tarOf("storages"): false,
	} {
		_, err := Detect(strings.NewReader(file), int64(len(file)))
		if errors.Is(err, ErrPacked) != want || !errors.Is(err, tensor.ErrUnsupported) {
			t.Errorf("%.10q: %v is packed: %t", file, err, !want)
		}
	}
}
