package torch

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weightfs/format/tensor"
)

var fourFloats = strings.Repeat("\x00\x00\x80\x3f", 4)

// TestArchiveFaults are archives that readers see differently, or that are not torch.save's.
func TestArchiveFaults(t *testing.T) {
	w := pkl(dict(str("w"), floats("0", 4)))
	data := member{name: "m/data/0", data: fourFloats}
	for _, test := range []struct {
		name   string
		file   []byte
		reason error
		about  string
	}{
		{"missing record", archiveOf(t, w), tensor.ErrMalformed, "data/0"},
		{"record twice", archiveOf(t, w, data, data), tensor.ErrMalformed, "m/data/0"},
		{"record twice but for case", archiveOf(t, w, data, member{name: "M/DATA/0"}), tensor.ErrMalformed, "M/DATA/0"},
		{"record too short", archiveOf(t, w, member{name: "m/data/0", data: "x"}), tensor.ErrMalformed, "1 bytes"},
		{"record too long", archiveOf(t, w, member{name: "m/data/0", data: fourFloats + "x"}), tensor.ErrMalformed, "17 bytes"},
		{"unknown compression", archiveOf(t, w, member{name: "m/data/0", data: fourFloats, method: 12}), tensor.ErrUnsupported, "method 12"},
		{"unknown compression of the pickle", archiveOf(t, w, member{name: "m/data.pkl", data: w, method: 93}), tensor.ErrUnsupported, "method 93"},
		{"encrypted", archiveOf(t, w, data, member{name: "m/x", change: func(h *zip.FileHeader) { h.Flags |= 1 }}), tensor.ErrUnsupported, "encrypted"},
		{"strongly encrypted", archiveOf(t, w, data, member{name: "m/x", change: func(h *zip.FileHeader) { h.Flags |= 1 << 6 }}), tensor.ErrUnsupported, "encrypted"},
		{"with a masked directory", archiveOf(t, w, data, member{name: "m/x", change: func(h *zip.FileHeader) { h.Flags |= 1 << 13 }}), tensor.ErrUnsupported, "encrypted"},
		{"encrypted by the local header", patched(archiveOf(t, w, data), "m/data/0", 6, 1), tensor.ErrUnsupported, "encrypted"},
		{"another local name", patched(archiveOf(t, w, data), "m/data/0", 30, 'n'), tensor.ErrMalformed, "another name"},
		{"another local method", patched(archiveOf(t, w, data), "m/data/0", 8, 8), tensor.ErrMalformed, "method"},
		{"another local size", patched(archiveOf(t, w, data), "m/data/0", 18, 9), tensor.ErrMalformed, "local header"},
		{"two sizes of a stored record", archiveOf(t, w, member{name: "m/data/0", data: "x", change: func(h *zip.FileHeader) { h.UncompressedSize64 = 16 }}),
			tensor.ErrMalformed, "two sizes"},
		{"size beyond the file", archiveOf(t, w, member{name: "m/data/0", change: func(h *zip.FileHeader) { h.CompressedSize64, h.UncompressedSize64 = 1<<40, 1<<40 }}),
			tensor.ErrTruncated, "truncated"},
		{"size of 2^64-1", archiveOf(t, w, member{name: "m/data/0", change: func(h *zip.FileHeader) { h.CompressedSize64, h.UncompressedSize64 = 1<<64-1, 1<<64-1 }}),
			tensor.ErrTruncated, "truncated"},
		{"overlapping records", archiveOf(t, w, member{name: "m/data/0", change: func(h *zip.FileHeader) { h.CompressedSize64, h.UncompressedSize64 = 16, 16 }}, member{name: "m/x"}),
			tensor.ErrMalformed, "inside"},
		{"deflate bomb", archiveOf(t, w, member{name: "m/data/0", data: "x", method: zip.Deflate, change: func(h *zip.FileHeader) { h.UncompressedSize64 = 1 << 40 }}),
			tensor.ErrMalformed, "claims"},
		{"deflated pickle of another size", archiveOf(t, w, data, member{name: "m/data.pkl", data: w, method: zip.Deflate, change: func(h *zip.FileHeader) { h.UncompressedSize64-- }}),
			tensor.ErrMalformed, "data.pkl"},
		{"deflated pickle with a wrong checksum", archiveOf(t, w, data, member{name: "m/data.pkl", data: w, method: zip.Deflate, change: func(h *zip.FileHeader) { h.CRC32++ }}),
			tensor.ErrMalformed, "checksum"},
		{"fault in a deflated pickle", archiveOf(t, "v", member{name: "m/data.pkl", data: "v", method: zip.Deflate}), tensor.ErrMalformed, "inflated"},
		{"archive behind another", append(zipOf(t, data), archiveOf(t, w, data)...), tensor.ErrMalformed, "behind"},
		{"not in a directory", zipOf(t, member{name: "data.pkl", data: w}, member{name: "version", data: "3"}), tensor.ErrMalformed, "directory"},
		{"no pickle", zipOf(t, member{name: "m/version", data: "3"}), tensor.ErrMalformed, "data.pkl"},
		{"no version", zipOf(t, member{name: "m/data.pkl", data: w}), tensor.ErrMalformed, "version"},
		{"version 0", archiveOf(t, w, data, member{name: "m/version", data: "0"}), tensor.ErrUnsupported, "is 0"},
		{"version 11", archiveOf(t, w, data, member{name: "m/version", data: "11\n"}), tensor.ErrUnsupported, "is 11"},
		{"version of letters", archiveOf(t, w, data, member{name: "m/version", data: "three"}), tensor.ErrMalformed, "three"},
		{"version of a mebibyte", archiveOf(t, w, data, member{name: "m/version", data: strings.Repeat("1", 1<<20)}), tensor.ErrTooLarge, "limit"},
		{"byte order", archiveOf(t, w, data, member{name: "m/byteorder", data: "middle"}), tensor.ErrMalformed, "middle"},
		{"TorchScript", archiveOf(t, w, data, member{name: "m/constants.pkl"}), tensor.ErrUnsupported, "TorchScript"},
		{"torch.export", archiveOf(t, w, data, member{name: "m/archive_format", data: "pt2"}), tensor.ErrUnsupported, "torch.export"},
		{"torch.export before 2.7", zipOf(t, member{name: "serialized_exported_program.json"}), tensor.ErrUnsupported, "torch.export"},
		{"torch.package", archiveOf(t, w, data, member{name: "m/.data/extern_modules"}), tensor.ErrUnsupported, "torch.package"},
		{"no records", zipOf(t), tensor.ErrMalformed, "empty zip"},
		{"no STOP", archiveOf(t, w[:len(w)-1], data), tensor.ErrTruncated, "truncated"},
		{"empty file", nil, tensor.ErrTruncated, "empty"},
		{"text", []byte("version https://git-lfs"), tensor.ErrMalformed, "neither"},
		{"PyTorch 1.0", []byte("PYTORCH1rest"), tensor.ErrUnsupported, "1.0"},
		{"ExecuTorch", []byte("\x00\x00\x00\x00ET12rest"), tensor.ErrUnsupported, "ExecuTorch"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, err := parse(test.file)
			if h != nil || !errors.Is(err, test.reason) {
				t.Fatalf("got %v, %v; want %v", h, err, test.reason)
			}
			checkMessage(t, err, []string{test.about})
		})
	}
}

// patched sets a byte of a record's local header.
func patched(file []byte, name string, at int, value byte) []byte {
	header := bytes.Index(file, []byte(name)) - 30
	file[header+at] = value
	return file
}

// TestTensorFaults are tensors that leave their storage, or are not what they should be.
func TestTensorFaults(t *testing.T) {
	s := stored("FloatStorage", "0", 4)
	const big = 1 << 62
	for _, test := range []struct{ name, tensor, about string }{
		{"offset at the end", tensorOf(s, 4, numbers(1), numbers(1)), "leaves the storage"},
		{"offset of 2^62", tensorOf(s, big, numbers(1), numbers(1)), "leaves the storage"},
		{"negative offset of nothing", tensorOf(s, -1, numbers(0), numbers(1)), "negative storage offset"},
		{"one element too many", tensorOf(s, 0, numbers(5), numbers(1)), "leaves the storage"},
		{"stride over the end", tensorOf(s, 0, numbers(2), numbers(4)), "leaves the storage"},
		{"strides that wrap", tensorOf(s, 0, numbers(5, 5), numbers(big, big)), "leaves the storage"},
		{"size that wraps", tensorOf(s, 0, numbers(1<<32, 1<<32), numbers(0, 0)), "64 bits"},
		{"bytes that wrap", tensorOf(s, 0, numbers(big), numbers(0)), "63 bits"},
		{"negative size", tensorOf(s, 0, numbers(-1), numbers(1)), "negative size"},
		{"negative stride", tensorOf(s, 3, numbers(4), numbers(-1)), "negative stride"},
		{"fewer strides", tensorOf(s, 0, numbers(2, 2), numbers(1)), "2 sizes with 1 strides"},
		{"size of 2^64", tensorOf(s, 0, tuple("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01"), numbers(1)), "64 bits"},
		{"size of text", tensorOf(s, 0, tuple(str("4")), numbers(1)), "no int"},
		{"no size", tensorOf(s, 0, "N", numbers(1)), "no tuple"},
		{"no storage", tensorOf("N", 0, numbers(4), numbers(1)), "storage is None"},
		{"too few arguments", call("torch._utils._rebuild_tensor_v2", s), "it takes 4"},
		{"storage of another size", tensorOf(stored("DoubleStorage", "0", 4), 0, numbers(1), numbers(1)), "data/0 has 16 bytes"},
		{"storage of 2^62 elements", tensorOf(stored("FloatStorage", "0", big), 0, numbers(1), numbers(1)), "elements"},
		{"storage of negative size", tensorOf(stored("FloatStorage", "0", -4), 0, numbers(1), numbers(1)), "-4 elements"},
		{"persistent id of an int", tensorOf("K\x01Q", 0, numbers(1), numbers(1)), "persistent id"},
		{"key of None", tensorOf(tuple(str("storage"), global("torch.FloatStorage"), "N", str("cpu"), number(4))+"Q", 0, numbers(1), numbers(1)), "key"},
		{"dtype that is a str", call("torch._utils._rebuild_tensor_v3", s, number(0), numbers(1), numbers(1), falseHooks, str("uint16")), "dtype"},
		{"quantizer of None", call("torch._utils._rebuild_qtensor", stored("QInt8Storage", "0", 16), number(0), numbers(1), numbers(1), "N", falseHooks), "quantizer"},
		{"wrapped too often", strings.Repeat("ctorch._utils\n_rebuild_parameter\n", 20) + floats("0", 4) + strings.Repeat("\x85R", 20), "limit of 16"},
		{"part of a record", tensorOf(tuple(str("storage"), global("torch.FloatStorage"), str("0"), str("cpu"), number(4), numbers(1, 0, 2))+"Q", 0, numbers(1), numbers(1)), "part of another"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, err := parse(archiveOf(t, pkl(dict(str("bad.one"), test.tensor)), member{name: "m/data/0", data: fourFloats}))
			fault, ok := errors.AsType[*tensor.FormatError](err)
			if h != nil || !ok || fault.Tensor != "bad.one" || fault.Off < 0 {
				t.Fatalf("got %v, %v", h, err)
			}
			checkMessage(t, err, []string{test.about})
		})
	}
}

// TestTruncated cuts files of both formats anywhere: there must be an error each time.
func TestTruncated(t *testing.T) {
	for _, name := range []string{"bare.pt", "legacy-views.pt"} {
		b, err := os.ReadFile(filepath.Join(testdata, "2.15", name))
		if err != nil {
			t.Fatal(err)
		}
		for n := range b {
			h, err := parse(b[:n])
			if h != nil || err == nil {
				t.Fatalf("%s: %d of %d bytes: %v, %v", name, n, len(b), h, err)
			}
			if n > 30 && !errors.Is(err, tensor.ErrTruncated) {
				t.Errorf("%s: %d of %d bytes: %v", name, n, len(b), err)
			}
		}
	}
}

// TestFlipped changes every byte of a file: what is then accepted must stay within it.
func TestFlipped(t *testing.T) {
	for _, name := range []string{"2.15/views.pt", "2.15/legacy-views.pt", "cases/deflated.pt"} {
		b, err := os.ReadFile(filepath.Join(testdata, name))
		if err != nil {
			t.Fatal(err)
		}
		for i := range b {
			for _, bit := range []byte{0x01, 0x80} {
				b[i] ^= bit
				h, err := parse(b)
				checkHeader(t, b, h, err)
				b[i] ^= bit
			}
		}
	}
}

// TestLegacyFaults are files of the legacy format.
func TestLegacyFaults(t *testing.T) {
	good := legacyOf(dict(str("w"), legacyFloats("7", 4)), "7", fourFloats)
	if _, err := parse(good); err != nil {
		t.Fatal(err)
	}
	wrongCount := bytes.Clone(good)
	binary.LittleEndian.PutUint64(wrongCount[len(good)-24:], 3)
	huge := bytes.Clone(good)
	binary.LittleEndian.PutUint64(huge[len(good)-24:], 1<<62)
	for _, test := range []struct {
		name   string
		file   []byte
		reason error
		about  string
	}{
		{"any pickle", []byte(pkl(dict(str("w"), "N"))), tensor.ErrMalformed, "magic"},
		{"another protocol", bytes.Replace(good, []byte("M\xe9\x03"), []byte("M\xe8\x03"), 1), tensor.ErrUnsupported, "1000"},
		{"number of elements", wrongCount, tensor.ErrMalformed, "12 bytes"},
		{"huge number of elements", huge, tensor.ErrTruncated, "truncated"},
		{"storage that is not listed", legacyOf(dict(str("w"), legacyFloats("7", 4))), tensor.ErrMalformed, `no storage "7"`},
		{"storage that is not used", legacyOf(dict(str("w"), legacyFloats("7", 4)), "7", fourFloats, "8", fourFloats), tensor.ErrMalformed, `"8"`},
		{"storage that is listed twice", legacyOf(dict(str("w"), legacyFloats("7", 4)), "7", fourFloats, "7", fourFloats), tensor.ErrMalformed, "twice"},
		{"view that leaves its storage", legacyOf(tensorOf(tuple(str("storage"), global("torch.FloatStorage"), str("7"), str("cpu"), number(4), tuple(str("8"), number(3), number(2)))+"Q",
			0, numbers(1), numbers(1)), "7", fourFloats), tensor.ErrMalformed, "leaves storage"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, err := parse(test.file)
			if h != nil || !errors.Is(err, test.reason) {
				t.Fatalf("got %v, %v; want %v", h, err, test.reason)
			}
			checkMessage(t, err, []string{test.about})
		})
	}
}

// checkHeader are the rules for any outcome of Parse.
func checkHeader(t testing.TB, file []byte, h *tensor.Header, err error) {
	t.Helper()
	if (h == nil) != (err != nil) {
		t.Fatalf("header %v with error %v", h, err)
	}
	if err != nil {
		if _, ok := errors.AsType[*tensor.FormatError](err); !ok {
			t.Fatalf("%v is no FormatError", err)
		}
		return
	}
	names := make(map[string]bool)
	for _, info := range h.Tensors {
		e := info.Extent
		if e.Off < 0 || e.Len < 0 || e.Off > int64(len(file)) || e.Len > int64(len(file))-e.Off {
			t.Fatalf("%q: extent %v of a file of %d bytes", info.Name, e, len(file))
		}
		if size, err := info.DType.Size(info.Shape, true); err != nil || size != info.Bytes {
			t.Fatalf("%q: %d bytes, but %s %v takes %d (%v)", info.Name, info.Bytes, info.DType, info.Shape, size, err)
		}
		if info.Layout == nil && e.Len != info.Bytes {
			t.Fatalf("%q: %d bytes in an extent of %d", info.Name, info.Bytes, e.Len)
		}
		if l := info.Layout; l != nil && l.Pack != tensor.Stored && (l.Skip < 0 || l.Skip > l.Unpacked) {
			t.Fatalf("%q: skips %d of %d bytes", info.Name, l.Skip, l.Unpacked)
		}
		if names[info.Name] {
			t.Fatalf("two tensors are called %q", info.Name)
		}
		names[info.Name] = true
	}
}
