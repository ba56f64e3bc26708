package onnx

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weightfs/format/elements"
	"weightfs/format/tensor"
)

const testdata = "../../testdata/onnx"

type goldenTensor struct {
	DType  string   `json:"dtype"`
	Shape  []uint64 `json:"shape"`
	SHA256 string   `json:"sha256"`
}

type golden struct {
	Tensors map[string]goldenTensor `json:"tensors"`
	Warn    []string                `json:"warn"`
	Error   []string                `json:"error"`
	Meta    []string                `json:"meta"`
	File    string                  `json:"file"` // that the only tensor names
}

func TestParseGolden(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(testdata, "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var files map[string]golden
	if err := json.Unmarshal(b, &files); err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(testdata, name)
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !Detect(bytes.NewReader(file), int64(len(file))) {
				t.Error("not detected")
			}
			h, err := Parse(bytes.NewReader(file), int64(len(file)))
			switch {
			case want.Error != nil:
				checkError(t, h, err, want.Error)
			case err != nil:
				t.Fatal(err)
			case want.File != "":
				if len(h.Tensors) != 1 || h.Tensors[0].File != want.File {
					t.Errorf("%+v", h.Tensors)
				}
			default:
				checkGolden(t, filepath.Dir(path), file, h, want)
			}
		})
	}
}

func checkGolden(t *testing.T, dir string, file []byte, h *tensor.Header, want golden) {
	if diff := cmp.Diff(want.Tensors, listing(t, dir, file, h)); diff != "" {
		t.Error(diff)
	}
	said := strings.Join(h.Warnings, "\n")
	for _, word := range want.Warn {
		if !strings.Contains(said, word) {
			t.Errorf("no warning about %q: %s", word, said)
		}
	}
	if len(want.Warn) == 0 && said != "" {
		t.Errorf("warnings: %s", said)
	}
	for _, key := range want.Meta {
		if h.Meta.Get(key) == nil {
			t.Errorf("no %q in %v", key, h.Meta)
		}
	}
}

// listing is what golden.json says of a file, as Parse and elements see it.
func listing(t *testing.T, dir string, file []byte, h *tensor.Header) map[string]goldenTensor {
	store := elements.NewUnpacker(t.TempDir(), 1<<30)
	defer store.Close()
	out := map[string]goldenTensor{}
	own := bytes.NewReader(file)
	for _, info := range h.Tensors {
		src := io.ReaderAt(own)
		if info.File != "" {
			other, err := os.ReadFile(filepath.Join(dir, info.File))
			if err != nil {
				t.Fatal(err)
			}
			src = bytes.NewReader(other)
		}
		r, err := elements.Reader(src, &info, store)
		if err != nil {
			t.Fatalf("%q: %v", info.Name, err)
		}
		sum := sha256.New()
		if n, err := io.Copy(sum, io.NewSectionReader(r, 0, info.Bytes)); n != info.Bytes || err != nil {
			t.Fatalf("%q: %d of %d bytes, %v", info.Name, n, info.Bytes, err)
		}
		out[info.Name] = goldenTensor{info.DType.String(), append([]uint64{}, info.Shape...), hex.EncodeToString(sum.Sum(nil))}
	}
	return out
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

// The builders of protobuf: a field of each wire type, and messages of fields.

func number(field, value uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, field<<3|wireVarint), value)
}

func data[T string | []byte](field uint64, value T) []byte {
	b := binary.AppendUvarint(nil, field<<3|wireBytes)
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func fixed32(field uint64, value string) []byte {
	return append(binary.AppendUvarint(nil, field<<3|wireFixed32), value...)
}

// model has a version and a graph with these fields.
func model(graph ...[]byte) []byte {
	return join(number(1, 8), data(7, join(graph...)))
}

func initializer(fields ...[]byte) []byte { return data(5, join(fields...)) }

func entry(key, value string) []byte { return data(13, join(data(1, key), data(2, value))) }

func externalF32(entries ...[]byte) []byte {
	return model(initializer(number(1, 4), number(2, 1), data(8, "w"), number(14, 1), join(entries...)))
}

func TestParseRefuses(t *testing.T) {
	f32, w := number(2, 1), data(8, "w")
	tests := []struct {
		name  string
		file  []byte
		err   error
		words []string
	}{
		{"nothing", nil, tensor.ErrMalformed, []string{"no graph"}},
		{"no graph", number(1, 8), tensor.ErrMalformed, []string{"no graph"}},
		{"graph cut short", model(initializer(number(1, 4), f32, w, data(9, "0123456789abcdef")))[:20], tensor.ErrTruncated, []string{"graph", "remain"}},
		{"field behind its message", join(number(1, 8), data(7, []byte{5<<3 | 2, 9, 1}), make([]byte, 99)), tensor.ErrMalformed, []string{"initializer", "9"}},
		{"varint behind its message", join(number(1, 8), data(7, data(5, []byte{1 << 3, 0x80})), []byte{1}), tensor.ErrMalformed, []string{"dimension"}},
		{"field number 0", join(number(1, 8), []byte{0, 0}), tensor.ErrMalformed, []string{"field number 0"}},
		{"group", join(number(1, 8), []byte{9<<3 | 3}), tensor.ErrMalformed, []string{"wire type 3"}},
		{"endless varint", bytes.Repeat([]byte{0xff}, 99), tensor.ErrMalformed, []string{"varint"}},
		{"name of another type", model(initializer(number(8, 3))), tensor.ErrMalformed, []string{"name", "wire type 0"}},
		{"raw data too short", model(initializer(number(1, 4), f32, w, data(9, "12345678"))), tensor.ErrMalformed, []string{`"w"`, "8", "16"}},
		{"raw data too long", model(initializer(f32, w, data(9, "12345678"))), tensor.ErrMalformed, []string{`"w"`, "8", "4"}},
		{"float_data too short", model(initializer(number(1, 3), f32, w, data(4, "12345678"))), tensor.ErrMalformed, []string{`"w"`, "8", "12"}},
		{"too few values", model(initializer(number(1, 3), number(2, 6), w, data(5, "\x01\x02"))), tensor.ErrMalformed, []string{`"w"`, "2 values", "3"}},
		{"too few fields of one value", model(initializer(number(1, 3), f32, w, fixed32(4, "1234"), fixed32(4, "5678"))), tensor.ErrMalformed, []string{`"w"`, "2 values", "3"}},
		{"half a value", model(initializer(number(1, 1), number(2, 6), w, data(5, "\x01\x82"))), tensor.ErrMalformed, []string{`"w"`, "varints"}},
		{"value over 64 bits", model(initializer(number(1, 1), number(2, 7), w, data(7, strings.Repeat("\xff", 9)+"\x02"))), tensor.ErrMalformed, []string{"varints"}},
		{"negative dimension", model(initializer(w, number(1, 1<<64-1))), tensor.ErrMalformed, []string{`"w"`, "-1"}},
		{"shape overflows", model(initializer(w, f32, number(1, 1<<62), number(1, 4), data(9, ""))), tensor.ErrTooLarge, []string{`"w"`, "shape"}},
		{"many dimensions", model(initializer(w, f32, data(1, make([]byte, 300)))), tensor.ErrTooLarge, []string{"255"}},
		{"graphs within graphs", nestedGraphs(60), tensor.ErrUnsafe, []string{"33 deep"}},
		{"duplicate initializer", model(initializer(w, f32, data(9, "1234")), initializer(w, f32, data(9, "1234"))), tensor.ErrMalformed, []string{`"w"`}},
		{"duplicate over two graphs", join(model(initializer(w, f32, data(9, "1234"))), model(initializer(w, f32, data(9, "1234")))), tensor.ErrMalformed, []string{`"w"`}},
		{"external without location", externalF32(entry("offset", "0")), tensor.ErrMalformed, []string{`"w"`, "location"}},
		{"external with NUL", externalF32(entry("location", "a\x00b")), tensor.ErrMalformed, []string{`a\x00b`}},
		{"external with two locations", externalF32(entry("location", "a"), entry("location", "b")), tensor.ErrMalformed, []string{"location", "twice"}},
		{"external with negative offset", externalF32(entry("location", "a"), entry("offset", "-1")), tensor.ErrMalformed, []string{"offset", "-1"}},
		{"external with odd offset", externalF32(entry("location", "a"), entry("offset", "0x10")), tensor.ErrMalformed, []string{"0x10"}},
		{"external with huge offset", externalF32(entry("location", "a"), entry("offset", "9223372036854775808")), tensor.ErrMalformed, []string{"2^63"}},
		{"external end overflows", externalF32(entry("location", "a"), entry("offset", "9223372036854775800"), entry("length", "16")), tensor.ErrTooLarge, []string{"16"}},
		{"external with empty length", externalF32(entry("location", "a"), entry("length", "")), tensor.ErrMalformed, []string{"length"}},
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

// nestedGraphs is a model with depth graphs, each in an attribute of a node of the one before.
func nestedGraphs(depth int) []byte {
	graph := data(2, "innermost")
	for range depth {
		graph = data(1, data(5, data(6, graph)))
	}
	return model(graph)
}

func TestParseExternal(t *testing.T) {
	file := externalF32(entry("location", "dir/w.bin"), entry("length", "16"), entry("offset", "4096"), entry("checksum", "abc"), entry("odd", "1"))
	h, err := Parse(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	want := []tensor.Info{{
		Name: "w", DType: tensor.F32, Shape: []uint64{4}, Bytes: 16, File: "dir/w.bin", Extent: tensor.Extent{Off: 4096, Len: 16},
		Extra: tensor.Object{{Key: "onnx_type", Value: "FLOAT"}, {Key: "file_sha1", Value: "abc"}},
	}}
	if diff := cmp.Diff(want, h.Tensors); diff != "" {
		t.Error(diff)
	}
	if len(h.Warnings) != 1 || !strings.Contains(h.Warnings[0], `"odd"`) {
		t.Errorf("%q", h.Warnings)
	}
	file = externalF32(entry("location", "w.bin"))
	h, err = Parse(bytes.NewReader(file), int64(len(file)))
	if err != nil || h.Tensors[0].Extent != (tensor.Extent{Len: -1}) {
		t.Errorf("%+v, %v", h, err)
	}
	if len(typeExtras[1]) != 1 {
		t.Error("the shared extras have changed")
	}
}

func TestParsePieces(t *testing.T) {
	f32, w := number(2, 1), data(8, "w")
	tests := []struct {
		name string
		file []byte
		at   tensor.Extent
		warn string
	}{
		{"packed", model(initializer(number(1, 2), f32, w, data(4, "12345678"))), tensor.Extent{Off: 15, Len: 8}, ""},
		{"one element not packed", model(initializer(f32, w, fixed32(4, "1234"))), tensor.Extent{Off: 12, Len: 4}, ""},
		{"one varint not packed", model(initializer(number(2, 6), w, number(5, 300))), tensor.Extent{Off: 12, Len: 2}, ""},
		{"two elements not packed", model(initializer(number(1, 2), f32, w, fixed32(4, "1234"), fixed32(4, "5678"))), tensor.Extent{Off: 13, Len: 10}, ""},
		{"two varints not packed", model(initializer(number(1, 2), number(2, 6), w, number(5, 300), number(5, 1))), tensor.Extent{Off: 13, Len: 5}, ""},
		{"two packed", model(initializer(number(1, 2), f32, w, data(4, "1234"), data(4, "5678"))), tensor.Extent{}, "2 pieces"},
		{"one packed and one not", model(initializer(number(1, 2), f32, w, data(4, "1234"), fixed32(4, "5678"))), tensor.Extent{}, "2 pieces"},
		{"two apart", model(initializer(f32, fixed32(4, "1234"), w, fixed32(4, "5678"), number(1, 2))), tensor.Extent{}, "2 pieces"},
		{"an empty piece", model(initializer(number(1, 2), f32, w, data(4, ""), data(4, "12345678"))), tensor.Extent{Off: 17, Len: 8}, ""},
		{"packed dims", model(initializer(data(1, "\x02"), f32, w, data(4, "12345678"))), tensor.Extent{Off: 16, Len: 8}, ""},
		{"the last raw_data counts", model(initializer(f32, w, data(9, "12345678"), data(9, "1234"))), tensor.Extent{Off: 23, Len: 4}, ""},
		{"data of another type", model(initializer(number(1, 2), f32, w, data(10, "12345678"))), tensor.Extent{}, "no data"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, err := Parse(bytes.NewReader(tt.file), int64(len(tt.file)))
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(h.Warnings, " "); tt.warn == "" && said != "" || !strings.Contains(said, tt.warn) {
				t.Errorf("warnings: %s", said)
			}
			if tt.warn == "" && h.Tensors[0].Extent != tt.at {
				t.Errorf("at %+v, not %+v", h.Tensors[0].Extent, tt.at)
			}
		})
	}
}

func TestDetect(t *testing.T) {
	good := model(initializer(number(1, 1000), number(2, 1), data(9, make([]byte, 4000))))
	tests := []struct {
		name string
		file []byte
		want bool
	}{
		{"model", good, true},
		{"cut short", good[:100], true},
		{"with a producer and opsets", join(number(1, 8), data(2, "pytorch"), data(8, number(2, 17)), data(7, data(2, "g"))), true},
		{"without a version", data(7, data(2, "g")), false},
		{"without a graph", join(number(1, 8), data(2, "pytorch")), false},
		{"version 0", join(number(1, 0), data(7, data(2, "g"))), false},
		{"producer not UTF-8", join(number(1, 8), data(2, "\xff\xfe"), data(7, data(2, "g"))), false},
		{"another message in the graph's place", join(number(1, 8), data(7, number(1, 1))), false},
		{"unknown field", join(number(1, 8), data(9, "x"), data(7, data(2, "g"))), false},
		{"empty", nil, false},
		{"zeros", make([]byte, 1000), false},
		{"text", []byte("The quick brown fox\n"), false},
		{"safetensors", []byte("\x08\x00\x00\x00\x00\x00\x00\x00{}      "), false},
		{"safetensors of another length", []byte("\x08\x3a\x00\x00\x00\x00\x00\x00{\"a\":1}"), false},
		{"pickle", []byte("\x80\x02}q\x00."), false},
		{"HDF5", []byte("\x89HDF\r\n\x1a\n\x00\x00\x00\x00"), false},
	}
	for _, tt := range tests {
		if got := Detect(bytes.NewReader(tt.file), int64(len(tt.file))); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	names, err := filepath.Glob(filepath.Join(testdata, "*.onnx"))
	more, err2 := filepath.Glob(filepath.Join(testdata, "hand/*/*.onnx"))
	if err != nil || err2 != nil || len(names) == 0 || len(more) == 0 {
		f.Fatal(names, more, err, err2)
	}
	for _, name := range append(names, more...) {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if len(b) < 10_000 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		size := int64(len(file))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h, err := Parse(bytes.NewReader(file), size)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20+400*uint64(size) {
			t.Errorf("%d bytes allocated for a file of %d", n, size)
		}
		Detect(bytes.NewReader(file), size)
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

// checkTensors demands that every tensor of the file lies in it and can be read, and that every other one
// may lie in a file.
func checkTensors(t *testing.T, file []byte, h *tensor.Header) {
	store := elements.NewUnpacker(t.TempDir(), 1<<30)
	defer store.Close()
	src := bytes.NewReader(file)
	for _, info := range h.Tensors {
		if info.File != "" {
			if e := info.Extent; e.Off < 0 || e.Len < -1 || e.Len > math.MaxInt64-e.Off {
				t.Errorf("%q lies at %+v of %q", info.Name, e, info.File)
			}
			continue
		}
		if e := info.Extent; e.Off < 0 || e.Len < 0 || e.Len > int64(len(file))-e.Off {
			t.Errorf("%q lies at %+v of %d bytes", info.Name, e, len(file))
		}
		r, err := elements.Reader(src, &info, store)
		if err != nil {
			t.Errorf("%q: %v", info.Name, err)
			continue
		}
		if n, err := io.Copy(io.Discard, io.NewSectionReader(r, 0, info.Bytes)); n != info.Bytes {
			t.Errorf("%q: %d of %d bytes, %v", info.Name, n, info.Bytes, err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	var graph [][]byte
	for i := range 100_000 {
		name := binary.AppendUvarint([]byte("model.layers.0.self_attn.q_proj.weight"), uint64(i))
		graph = append(graph, initializer(number(1, 4), number(1, 4), number(2, 1), data(8, name), data(9, make([]byte, 64))))
	}
	file := model(graph...)
	for b.Loop() {
		if _, err := Parse(bytes.NewReader(file), int64(len(file))); err != nil {
			b.Fatal(err)
		}
	}
}

// Three million Constants that nothing names made 29 times the memory of their file.
func TestParseBoundsItsWarnings(t *testing.T) {
	f32 := data(5, join(number(1, 1), number(2, 1), data(9, "1234")))
	nameless := data(1, join(data(4, "Constant"), data(5, join(data(1, "value"), f32))))
	const nodes = 5000
	file := model(bytes.Repeat(nameless, nodes))
	h, err := Parse(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(h.Warnings); n > nodes/2 || !strings.Contains(h.Warnings[n-2], "0 outputs") {
		t.Errorf("%d warnings of %d nodes", n, nodes)
	}
}
