package numpy

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weightfs/format/elements"
	"weightfs/format/tensor"
)

const testdata = "../../testdata/numpy"

func readJSON(t testing.TB, name string, v any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testdata, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

type goldenTensor struct {
	DType  string   `json:"dtype"`
	Shape  []uint64 `json:"shape"`
	SHA256 string   `json:"sha256"`
}

type golden struct {
	Tensors map[string]goldenTensor `json:"tensors"`
	Warn    []string                `json:"warn"`
	Error   []string                `json:"error"`
}

// listing is what golden.json says of a file, as Parse and elements see it.
func listing(t testing.TB, file []byte, h *tensor.Header) map[string]goldenTensor {
	t.Helper()
	store := elements.NewUnpacker(t.TempDir(), 1<<30)
	defer store.Close()
	src, out := bytes.NewReader(file), map[string]goldenTensor{}
	for _, info := range h.Tensors {
		r, err := elements.Reader(src, &info, store)
		if err != nil {
			t.Fatalf("%q: %v", info.Name, err)
		}
		sum := sha256.New()
		if n, err := io.Copy(sum, io.NewSectionReader(r, 0, info.Bytes)); n != info.Bytes || err != nil {
			t.Fatalf("%q: %d of %d bytes, %v", info.Name, n, info.Bytes, err)
		}
		shape := append([]uint64{}, info.Shape...)
		out[info.Name] = goldenTensor{info.DType.String(), shape, hex.EncodeToString(sum.Sum(nil))}
	}
	return out
}

func TestParseGolden(t *testing.T) {
	var files map[string]golden
	readJSON(t, "golden.json", &files)
	for name, want := range files {
		t.Run(name, func(t *testing.T) {
			file, err := os.ReadFile(filepath.Join(testdata, name))
			if err != nil {
				t.Fatal(err)
			}
			h, err := Parse(bytes.NewReader(file), int64(len(file)))
			if want.Error != nil {
				checkError(t, h, err, want.Error)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Tensors, listing(t, file, h)); diff != "" {
				t.Error(diff)
			}
			said := strings.Join(h.Warnings, "\n")
			for _, word := range want.Warn {
				if !strings.Contains(said, word) {
					t.Errorf("no warning about %q: %s", word, said)
				}
			}
			if want.Warn == nil && len(h.Warnings) > 0 && !strings.Contains(said, "follow the array") {
				t.Errorf("warnings: %s", said)
			}
		})
	}
}

func checkError(t testing.TB, h *tensor.Header, err error, words []string) {
	t.Helper()
	var fe *tensor.FormatError
	if h != nil || !errors.As(err, &fe) {
		t.Fatalf("%v, %v: not a format error", h, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in the message: %v", word, err)
		}
	}
}

// npy makes a .npy of version 1.0.
func npy(header string, data int) []byte {
	b := append([]byte(magic), 1, 0, byte(len(header)), byte(len(header)>>8))
	return append(append(b, header...), make([]byte, data)...)
}

const vector = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}"

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		name  string
		file  []byte
		off   int64
		err   error
		words []string
	}{
		{"nothing", nil, 0, tensor.ErrTruncated, []string{"empty file"}},
		{"three bytes", []byte(magic[:3]), 0, tensor.ErrTruncated, nil},
		{"magic only", []byte(magic), 6, tensor.ErrTruncated, []string{"version"}},
		{"another magic", []byte("GGUF1234567890"), 0, tensor.ErrMalformed, []string{`"GGUF12"`}},
		{"version 0", []byte(magic + "\x00\x00\x00\x00"), 6, tensor.ErrUnsupported, []string{"0.0"}},
		{"version 1.1", []byte(magic + "\x01\x01\x00\x00"), 6, tensor.ErrUnsupported, []string{"1.1"}},
		{"length cut", []byte(magic + "\x02\x00\x01\x00"), 8, tensor.ErrTruncated, []string{"length"}},
		{"header cut", []byte(magic + "\x01\x00\x50\x00{}"), 8, tensor.ErrTruncated, []string{"80", "2"}},
		{"header too long", npy(vector+strings.Repeat(" ", 10_000), 12), 8, tensor.ErrUnsupported, []string{"10000"}},
		{"header of version 3 not UTF-8", append([]byte(magic), 3, 0, 1, 0, 0, 0, 0xff), 12, tensor.ErrMalformed, []string{"UTF-8"}},
		{"data cut", npy(vector, 11), 10 + int64(len(vector)), tensor.ErrTruncated, []string{"12", "11", "76 bytes of the 77", "1 are missing", "download"}},
		{"size overflows", npy("{'descr': '<f8', 'fortran_order': True, 'shape': (3037000500, 3037000500)}", 64), 84,
			tensor.ErrTooLarge, []string{"shape"}},
		{"size overflows but for a zero", npy("{'descr': '<f8', 'fortran_order': True, 'shape': (1152921504606846976, 0)}", 64), 84,
			tensor.ErrTooLarge, []string{"shape"}},
		{"objects", npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", 64), 10, tensor.ErrUnsupported, []string{"pickled"}},
		{"deep nesting", npy(strings.Repeat("(", 5000), 0), 10, tensor.ErrMalformed, []string{"nested"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, err := Parse(bytes.NewReader(tt.file), int64(len(tt.file)))
			checkError(t, h, err, tt.words)
			var fe *tensor.FormatError
			if errors.As(err, &fe); fe.Off != tt.off || !errors.Is(err, tt.err) {
				t.Errorf("offset %d, %v: %v", fe.Off, fe.Err, err)
			}
		})
	}
}

func TestDescrAgainstNumPy(t *testing.T) {
	var want map[string]*string
	readJSON(t, "descr.json", &want)
	ours := map[string]bool{} // what weightfs knows beyond NumPy
	for _, name := range []string{"f1", "<f1", ">f1", "|f1", "=f1"} {
		ours[name] = true
	}
	theirs := map[string]bool{"int4": true, "float8_e3m4": true} // of ml_dtypes: no type of ours
	for descr, numpy := range want {
		e, err := parseDescr(descr)
		switch {
		case numpy == nil && err == nil && !ours[descr]:
			t.Errorf("%q: NumPy refuses what is taken for %s", descr, e.dtype)
		case err != nil && numpy != nil && shown(*numpy) && !theirs[descr]:
			t.Errorf("%q: NumPy takes it for %s: %v", descr, *numpy, err)
		case err == nil && numpy != nil && describe(e) != *numpy:
			t.Errorf("%q: NumPy takes it for %s, not %s", descr, *numpy, describe(e))
		}
	}
}

// shown tells whether there is a type for what NumPy calls so.
func shown(descr string) bool {
	return strings.Contains("biufcV", descr[1:2]) && !strings.Contains("f16 c32 V0 structured StringDType()", descr[1:])
}

func describe(e element) string {
	switch {
	case e.bytes > 0:
		return fmt.Sprintf("|V%d", e.bytes)
	case e.guess && e.dtype == tensor.U8, strings.HasPrefix(e.dtype.String(), "F8"):
		return "|V1"
	case e.guess:
		return "|V2"
	case e.swap:
		return ">" + e.dtype.Descr()[1:]
	}
	return e.dtype.Descr()
}

func TestHeadersAgainstNumPy(t *testing.T) {
	var cases [][3]any
	readJSON(t, "headers.json", &cases)
	for _, c := range cases {
		text, version := c[1].(string), c[0].(float64)
		h, err := parseHeader(text, version <= 2)
		if c[2] == nil {
			if err == nil {
				t.Errorf("version %v: NumPy refuses %q", version, text)
			}
			continue
		}
		want := c[2].([]any)
		if err != nil {
			if want[2] == "structured" || !shown(want[2].(string)) || strings.Contains(text, "2 L") || strings.Contains(err.Error(), "nested") {
				continue
			}
			t.Errorf("version %v: NumPy reads %q: %v", version, text, err)
			continue
		}
		shape := []any{}
		for _, n := range h.shape {
			shape = append(shape, float64(n))
		}
		if diff := cmp.Diff(want, []any{shape, h.fortran, describe(h.element)}); diff != "" {
			t.Errorf("version %v: %q: %s", version, text, diff)
		}
	}
}

// zipped writes members in turn; change may spoil the file's bytes.
func zipped(t testing.TB, members ...func(*zip.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		if err := m(w); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func raw(h zip.FileHeader, packed []byte) func(*zip.Writer) error {
	return func(w *zip.Writer) error {
		h.CompressedSize64 = uint64(len(packed))
		f, err := w.CreateRaw(&h)
		if err == nil {
			_, err = f.Write(packed)
		}
		return err
	}
}

func stored(name string, content []byte) func(*zip.Writer) error {
	return raw(zip.FileHeader{Name: name, UncompressedSize64: uint64(len(content))}, content)
}

func deflated(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, 9)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(content)
	w.Close()
	return b.Bytes()
}

func TestParseZipRefuses(t *testing.T) {
	good := npy(vector, 12)
	packed := deflated(t, good)
	size := uint64(len(good))
	tests := []struct {
		name  string
		file  []byte
		err   error
		words []string
	}{
		{"other size than stored", zipped(t, raw(zip.FileHeader{Name: "a.npy", UncompressedSize64: 500}, good)), tensor.ErrMalformed, []string{"a.npy", "500"}},
		{"more than deflate can make", zipped(t, raw(zip.FileHeader{Name: "a.npy", Method: 8, UncompressedSize64: 1 << 40}, packed)),
			tensor.ErrMalformed, []string{"a.npy", "1099511627776"}},
		{"encrypted", zipped(t, raw(zip.FileHeader{Name: "a.npy", Flags: 1, UncompressedSize64: size}, good)), tensor.ErrUnsupported, []string{"encrypted"}},
		{"strongly encrypted", zipped(t, raw(zip.FileHeader{Name: "a.npy", Flags: 1 << 6, UncompressedSize64: size}, good)), tensor.ErrUnsupported, []string{"encrypted"}},
		{"truncated array", zipped(t, stored("b.npy", good), stored("a.npy", good[:len(good)-1])), tensor.ErrTruncated, []string{`"a"`, "12", "11"}},
		{"malformed header", zipped(t, stored("a.npy", npy("{", 3))), tensor.ErrMalformed, []string{`"a"`, "header"}},
		{"no deflate stream", zipped(t, raw(zip.FileHeader{Name: "a.npy", Method: 8, UncompressedSize64: size}, bytes.Repeat([]byte{0xff}, 40))),
			tensor.ErrMalformed, []string{`"a"`, "flate"}},
		{"the same member twice", zipped(t, stored("a.npy", good), stored("a.npy", good)), tensor.ErrMalformed, []string{"two", "a.npy"}},
		{"the same tensor twice", zipped(t, stored("a.npy", good), stored("a", good)), tensor.ErrMalformed, []string{"a.npy"}},
		{"no .npy", zipped(t, stored("a.txt", []byte("hello, world"))), tensor.ErrUnsupported, []string{"1 members", ".npy"}},
		{"no directory", zipped(t, stored("a.npy", good))[:120], tensor.ErrTruncated, []string{"zip", "120"}},
		{"local method differs", spoiled(zipped(t, stored("a.npy", good)), 8, 8), tensor.ErrMalformed, []string{"method 0", "8"}},
		{"local header encrypted", spoiled(zipped(t, stored("a.npy", good)), 6, 1), tensor.ErrUnsupported, []string{"encrypted"}},
		{"local name differs", spoiled(zipped(t, stored("a.npy", good)), 30, 'b'), tensor.ErrMalformed, []string{"a.npy", "b.npy"}},
		{"one inside another", overlapping(t, good), tensor.ErrMalformed, []string{"a.npy", "b.npy"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, err := Parse(bytes.NewReader(tt.file), int64(len(tt.file)))
			checkError(t, h, err, tt.words)
			if !errors.Is(err, tt.err) {
				t.Error(err)
			}
		})
	}
}

func spoiled(file []byte, at int, b byte) []byte {
	file[at] = b
	return file
}

// overlapping is an archive in whose first member the second one lies whole.
func overlapping(t testing.TB, content []byte) []byte {
	inner := zipped(t, stored("b.npy", content))
	file := zipped(t, stored("a.npy", append(npy(vector, 12), inner[:30+5+len(content)]...)), stored("b.npy", content))
	entry := bytes.LastIndex(file, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(file[entry+42:], uint32(30+5+len(npy(vector, 12))))
	return file
}

func TestParseZipKeepsOthers(t *testing.T) {
	good := npy(vector, 12)
	file := zipped(t, stored("v4.npy", append([]byte(magic), 4, 0, 0, 0, 0, 0)), stored("", good), stored("../x.npy", good),
		stored("short.npy", []byte("hello")), stored("short.txt", []byte("hello")), raw(zip.FileHeader{Name: "z.npy", Method: 93, UncompressedSize64: 50}, good))
	h, err := Parse(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Tensors) != 2 || h.Tensors[0].Name != "" || h.Tensors[1].Name != "../x" {
		t.Errorf("%+v", h.Tensors)
	}
	if len(h.Warnings) != 3 || !strings.Contains(h.Warnings[0], "4.0") || !strings.Contains(h.Warnings[1], `"short.npy"`) || !strings.Contains(h.Warnings[2], "zstd") {
		t.Errorf("%q", h.Warnings)
	}
}

// A member of 64 MiB of zeros must not be inflated to learn its header.
func TestParseInflatesOnlyHeaders(t *testing.T) {
	const size = 64 << 20
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, 9)
	w.Write(npy(fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d,)}", size), 0))
	for range size >> 20 {
		w.Write(make([]byte, 1<<20))
	}
	w.Close()
	head := uint64(len(npy(fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d,)}", size), 0)))
	file := zipped(t, raw(zip.FileHeader{Name: "z.npy", Method: 8, UncompressedSize64: head + size}, b.Bytes()))
	src := &countReader{ReaderAt: bytes.NewReader(file)}
	h, err := Parse(src, int64(len(file)))
	if err != nil || h.Tensors[0].Bytes != size {
		t.Fatal(h, err)
	}
	if src.n > 8<<10 {
		t.Errorf("%d bytes read", src.n)
	}
}

type countReader struct {
	io.ReaderAt
	n int
}

func (c *countReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	c.n += n
	return n, err
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"*.np[yz]", "hand/*.np[yz]"} {
		names, err := filepath.Glob(filepath.Join(testdata, pattern))
		if err != nil || len(names) == 0 {
			f.Fatal(names, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		size := int64(len(file))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h, err := Parse(bytes.NewReader(file), size)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20+64*uint64(size) {
			t.Errorf("%d bytes allocated for a file of %d", n, size)
		}
		if (err == nil) != (h != nil) {
			t.Fatalf("%v with %v", h, err)
		}
		if err != nil {
			var fe *tensor.FormatError
			if !errors.As(err, &fe) {
				t.Errorf("%T: %v", err, err)
			}
			return
		}
		again, err := Parse(bytes.NewReader(file), size)
		if err != nil || !cmp.Equal(h, again) {
			t.Errorf("another result the second time: %v", err)
		}
		checkTensors(t, file, h)
	})
}

// checkTensors demands that every tensor lies in the file and can be read, or fails with an error.
func checkTensors(t *testing.T, file []byte, h *tensor.Header) {
	store := elements.NewUnpacker(t.TempDir(), 1<<20)
	defer store.Close()
	src := bytes.NewReader(file)
	for _, info := range h.Tensors {
		if e := info.Extent; e.Off < 0 || e.Len < 0 || e.Len > int64(len(file))-e.Off {
			t.Errorf("%q lies at %+v of %d bytes", info.Name, e, len(file))
		}
		r, err := elements.Reader(src, &info, store)
		if err != nil {
			t.Errorf("%q: %v", info.Name, err)
			continue
		}
		n, err := io.Copy(io.Discard, io.NewSectionReader(r, 0, info.Bytes))
		if deflated := info.Layout != nil && info.Layout.Pack != tensor.Stored; n != info.Bytes && !deflated {
			t.Errorf("%q: %d of %d bytes, %v", info.Name, n, info.Bytes, err)
		}
	}
}

func BenchmarkParseZip(b *testing.B) {
	good := npy(vector, 12)
	var members []func(*zip.Writer) error
	for i := range 10_000 {
		members = append(members, stored(fmt.Sprintf("layer/%d/kernel.npy", i), good))
	}
	file := zipped(b, members...)
	for b.Loop() {
		if _, err := Parse(bytes.NewReader(file), int64(len(file))); err != nil {
			b.Fatal(err)
		}
	}
}
