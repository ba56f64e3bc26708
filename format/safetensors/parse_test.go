package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weightfs/format/tensor"
)

// file is a file of a header and data bytes 0, 1, 2 and so on.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for i := range data {
		b = append(b, byte(i))
	}
	return b
}

func parseBytes(b []byte) (*tensor.Header, error) {
	return Parse(bytes.NewReader(b), int64(len(b)))
}

// member is one record of a header.
func member(name, dtype, shape string, begin, end uint64) string {
	return fmt.Sprintf(`%q:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, name, dtype, shape, begin, end)
}

func headerOf(members ...string) string { return "{" + strings.Join(members, ",") + "}" }

func TestParse(t *testing.T) {
	b := file(` {"__metadata__":{"k":"1","format":"pt","k":"2"},"z\u0061\/\ud83d\ude00":{"data_offsets":[4,8],"shape":[2],"x":[{}],"dtype":"BF16"},"s":["F32",[],[0,4]],"e":{"dtype":"I8","shape":[3,0],"data_offsets":[8,8]}}  `, 8)
	start := int64(len(b) - 8)
	want := &tensor.Header{
		Format:    "safetensors",
		DataStart: start,
		Meta:      tensor.Object{{Key: "k", Value: "2"}, {Key: "format", Value: "pt"}},
		Tensors: []tensor.Info{
			{Name: "za/😀", DType: tensor.BF16, Shape: []uint64{2}, Bytes: 4, Extent: tensor.Extent{Off: start + 4, Len: 4}},
			{Name: "s", DType: tensor.F32, Shape: []uint64{}, Bytes: 4, Extent: tensor.Extent{Off: start, Len: 4}},
			{Name: "e", DType: tensor.I8, Shape: []uint64{3, 0}, Extent: tensor.Extent{Off: start + 8}},
		},
	}
	got, err := parseBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("header differs (-want +got):\n%s", diff)
	}
}

// Every refusal names the tensor, where the record stands, and the numbers that disagree.
func TestRefusals(t *testing.T) {
	a, b := member("a", "U8", "[4]", 0, 4), member("b", "U8", "[4]", 4, 8)
	tests := []struct {
		name   string
		file   []byte
		reason error
		off    int64
		tensor string
		about  []string
	}{
		{"empty file", nil, tensor.ErrTruncated, -1, "", []string{"empty file"}},
		{"too small", []byte("abc"), tensor.ErrTruncated, 0, "", []string{"header too small", "3 bytes", "8"}},
		{"length of 2^64-1", []byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"), tensor.ErrTooLarge, 0, "", []string{"header too large", "18446744073709551615", "100000000"}},
		{"length over the limit", []byte("\x01\xe1\xf5\x05\x00\x00\x00\x00{}"), tensor.ErrTooLarge, 0, "", []string{"100000001"}},
		{"header cut", []byte("\x00\xe1\xf5\x05\x00\x00\x00\x00{}"), tensor.ErrTruncated, 0, "", []string{"truncated", "has 10", "99999998 are missing"}},
		{"bad UTF-8", file("{\"\xff\":1}", 0), tensor.ErrMalformed, 10, "", []string{"UTF-8", "0xff"}},
		{"NUL padding", file("{}\x00\x00", 0), tensor.ErrMalformed, 10, "", []string{"header", "trailing characters", "0x00"}},
		{"byte order mark", file("\ufeff{}", 0), tensor.ErrMalformed, 8, "", []string{"byte order mark"}},
		{"trailing comma", file(`{"__metadata__":{},}`, 0), tensor.ErrMalformed, 27, "", []string{"trailing comma"}},
		{"duplicate", file(headerOf(a, b, a), 8), tensor.ErrMalformed, 113, "a", []string{"duplicate", "offset 9,", "at 113"}},
		{"duplicate in another spelling", file(headerOf(a, strings.Replace(a, "a", `\u0061`, 1)), 4), tensor.ErrMalformed, 61, "a", []string{"duplicate"}},
		{"duplicate field", file(`{"a":{"dtype":"U8","dtype":"U8"}}`, 0), tensor.ErrMalformed, 27, "a", []string{`duplicate field "dtype"`}},
		{"duplicate metadata", file(`{"__metadata__":null,"__metadata__":{}}`, 0), tensor.ErrMalformed, 29, "", []string{"duplicate", "__metadata__"}},
		{"metadata of numbers", file(`{"__metadata__":{"n":1}}`, 0), tensor.ErrMalformed, 29, "", []string{"__metadata__", `"n"`, "a number", "a string"}},
		{"metadata of another kind", file(`{"__metadata__":["x"]}`, 0), tensor.ErrMalformed, 24, "", []string{"__metadata__", "an array"}},
		{"null record", file(`{"a":null}`, 0), tensor.ErrMalformed, 13, "a", []string{"null"}},
		{"missing field", file(`{"a":{"Dtype":"U8","shape":[],"data_offsets":[0,1]}}`, 1), tensor.ErrMalformed, 9, "a", []string{`missing field "dtype"`}},
		{"float", file(headerOf(member("a", "U8", "[4.0]", 0, 4)), 4), tensor.ErrMalformed, 36, "a", []string{"shape", "4.0", "unsigned integer"}},
		{"negative", file(`{"a":{"data_offsets":[-16,0]}}`, 0), tensor.ErrMalformed, 30, "a", []string{"data_offsets", "-16"}},
		{"over 64 bits", file(headerOf(member("a", "U8", "[18446744073709551616]", 0, 4)), 4), tensor.ErrMalformed, 36, "a", []string{"shape", "18446744073709551616"}},
		{"three offsets", file(`{"a":["U8",[],[0,1,2]]}`, 1), tensor.ErrMalformed, 22, "a", []string{"data_offsets", "2 numbers"}},
		{"lone surrogate", file(`{"\ud800":null}`, 0), tensor.ErrMalformed, 10, "", []string{"lone surrogate", "d800"}},
		{"control character", file("{\"a\nb\":null}", 0), tensor.ErrMalformed, 11, "", []string{"control character", "0x0a"}},
		{"nesting", file(`{"a":{"x":`+strings.Repeat("[", 200), 0), tensor.ErrTooLarge, 143, "a", []string{"nesting", "127"}},
		{"rank", file(`{"a":{"shape":[`+strings.Repeat("1,", 1025)+"1]}}", 0), tensor.ErrTooLarge, 2072, "a", []string{"shape", "1024"}},
		{"backwards", file(headerOf(member("a", "U8", "[4]", 4, 0)), 4), tensor.ErrMalformed, 9, "a", []string{"data_offsets [4, 0]"}},
		{"shape overflows", file(headerOf(member("a", "U8", "[4294967296,4294967296]", 0, 0)), 0), tensor.ErrTooLarge, 9, "a", []string{"overflow", "[4294967296, 4294967296]"}},
		{"shape of an unknown type overflows", file(headerOf(member("a", "X9", "[4294967296,4294967296]", 0, 0)), 0), tensor.ErrTooLarge, 9, "a", []string{"overflow"}},
		{"bytes overflow", file(headerOf(member("a", "F32", "[4611686018427387908]", 0, 16)), 16), tensor.ErrTooLarge, 9, "a", []string{"overflow", "F32"}},
		{"half a byte", file(headerOf(member("a", "F4", "[3]", 0, 2)), 2), tensor.ErrMalformed, 9, "a", []string{"F4", "[3]", "whole number of bytes"}},
		{"another size", file(headerOf(member("a", "F32", "[4]", 0, 15)), 15), tensor.ErrMalformed, 9, "a", []string{"15 bytes", "takes 16"}},
		{"overlap", file(headerOf(b, member("a", "U8", "[6]", 0, 6)), 8), tensor.ErrMalformed, 9, "b", []string{"overlap", "[4, 8]", "[0, 6]", `"a"`}},
		{"the same range", file(headerOf(a, member("c", "U8", "[4]", 0, 4)), 4), tensor.ErrMalformed, 61, "c", []string{"overlap"}},
		{"empty inside another", file(headerOf(a, member("z", "U8", "[0]", 2, 2)), 4), tensor.ErrMalformed, 61, "z", []string{"data_offsets [2, 2]", "[0, 4]"}},
		{"overlap by an unknown type", file(headerOf(a, member("q", "X9", "[4]", 2, 4)), 4), tensor.ErrMalformed, 61, "q", []string{"overlap"}},
		{"truncated", file(headerOf(a, b), 6), tensor.ErrTruncated, 61, "b", []string{"truncated", "121", "119", "2 are missing", "download the file again"}},
		{"unknown type beyond the file", file(headerOf(member("q", "X9", "[4]", 1<<40, 1<<40+4)), 4), tensor.ErrTruncated, 9, "q", []string{"data_offsets", "1099511627776"}},
		{"unknown type beyond 63 bits", file(headerOf(member("q", "X9", "[4]", 0, 1<<64-1)), 4), tensor.ErrTooLarge, 9, "q", []string{"18446744073709551615"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, err := parseBytes(tt.file)
			e, ok := errors.AsType[*tensor.FormatError](err)
			if !ok || h != nil {
				t.Fatalf("got %v and header %v, want an error and no header", err, h)
			}
			if !errors.Is(err, tt.reason) || e.Off != tt.off || e.Tensor != tt.tensor {
				t.Errorf("%v: reason %v, offset %d, tensor %q; want %v, %d, %q", err, e.Err, e.Off, e.Tensor, tt.reason, tt.off, tt.tensor)
			}
			for _, word := range tt.about {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %q", err, word)
				}
			}
		})
	}
}

// Holes and trailing bytes come with the header, so that --lenient can go on.
func TestTolerable(t *testing.T) {
	a, b := member("a", "U8", "[4]", 4, 8), member("b", "U8", "[4]", 10, 14)
	f := file(headerOf(a, b), 17)
	start := int64(len(f) - 17)
	h, err := parseBytes(f)
	if err != nil || len(h.Tensors) != 2 {
		t.Fatalf("got %v, %v", h, err)
	}
	want := []tensor.FormatError{
		{Off: start, Tensor: "a", Msg: "hole of 4 bytes: data_offsets [4, 8], but no tensor covers [0, 4]"},
		{Off: start + 8, Tensor: "b", Msg: "hole of 2 bytes: data_offsets [10, 14], but no tensor covers [8, 10]"},
		{Off: start + 14, Msg: fmt.Sprintf("3 trailing bytes after the last tensor: the header describes a file of %d bytes, this one has %d", start+14, start+17)},
	}
	for i, e := range h.Tolerable {
		w := want[i]
		if e.Off != w.Off || e.Tensor != w.Tensor || e.Msg != w.Msg || !errors.Is(e, tensor.ErrMalformed) {
			t.Errorf("fault %d is %v, want %v", i, e, &w)
		}
	}
	if len(h.Tolerable) != len(want) {
		t.Errorf("%d faults, want %d", len(h.Tolerable), len(want))
	}
}

func TestManyHolesAreSummedUp(t *testing.T) {
	var members []string
	for i := range uint64(150) {
		members = append(members, member(fmt.Sprint(i), "U8", "[1]", 2*i+1, 2*i+2))
	}
	h, err := parseBytes(file(headerOf(members...), 300))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(h.Tolerable); n != 101 || !strings.Contains(h.Tolerable[100].Msg, "50 more holes between tensors, of 50 bytes") {
		t.Errorf("%d faults, the last is %v", n, h.Tolerable[n-1])
	}
}

func TestUnknownTypeIsLeftOut(t *testing.T) {
	h, err := parseBytes(file(headerOf(member("a", "U8", "[4]", 0, 4), member("q", "F8_E3M4", "[4]", 4, 8), member("c", "C128", "[1]", 8, 24)), 24))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`tensor "q" is left out: unknown dtype "F8_E3M4" (shape [4], data_offsets [4, 8])`,
		`tensor "c" is left out: unknown dtype "C128" (shape [1], data_offsets [8, 24])`}
	if diff := cmp.Diff(want, h.Warnings); diff != "" || len(h.Tensors) != 1 || len(h.Tolerable) != 0 {
		t.Errorf("tensors %v, faults %v, warnings differ:\n%s", h.Tensors, h.Tolerable, diff)
	}
}

// A header as any writer may write it comes back as it went in, whatever the order of its records.
func TestRoundTrip(t *testing.T) {
	dtypes := []tensor.DType{tensor.U8, tensor.F32, tensor.BF16, tensor.C64, tensor.F8_E8M0}
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.String(), 0, 20, rapid.ID).Draw(t, "names")
		want, end := []tensor.Info{}, int64(0)
		for _, name := range names {
			if name == metadataKey {
				continue
			}
			info := tensor.Info{Name: name, DType: rapid.SampledFrom(dtypes).Draw(t, "dtype"),
				Shape: rapid.SliceOfN(rapid.Uint64Range(0, 3), 0, 4).Draw(t, "shape")}
			info.Bytes, _ = info.DType.Size(info.Shape, false)
			info.Extent = tensor.Extent{Off: end, Len: info.Bytes}
			end += info.Bytes
			want = append(want, info)
		}
		rand.Shuffle(len(want), func(i, j int) { want[i], want[j] = want[j], want[i] })
		h, err := parseBytes(file(render(want), int(end)))
		if err != nil || len(h.Tolerable)+len(h.Warnings) > 0 {
			t.Fatalf("%v, %v", h, err)
		}
		for i := range want {
			want[i].Extent.Off += h.DataStart
		}
		if diff := cmp.Diff(want, h.Tensors); diff != "" {
			t.Errorf("tensors differ (-want +got):\n%s", diff)
		}
	})
}

// render writes a header for tensors whose extents are relative to the byte buffer.
func render(tensors []tensor.Info) string {
	b := []byte("{")
	for i, info := range tensors {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(tensor.AppendString(b, info.Name), `:{"dtype":"`...)
		b = append(append(b, info.DType.String()...), `","shape":`...)
		b = append(tensor.AppendShape(b, info.Shape), `,"data_offsets":`...)
		b = append(tensor.AppendShape(b, []uint64{uint64(info.Extent.Off), uint64(info.Extent.Off + info.Extent.Len)}), '}')
	}
	return string(append(b, '}'))
}

// A file that shrinks or fails while it is read is an error, not a panic.
func TestReadFault(t *testing.T) {
	b := file(headerOf(member("a", "U8", "[4]", 0, 4)), 4)
	for _, n := range []int{0, 4, 8, 20} {
		h, err := Parse(bytes.NewReader(b[:n]), int64(len(b)))
		if h != nil || !errors.Is(err, tensor.ErrTruncated) {
			t.Errorf("%d bytes: header %v, error %v", n, h, err)
		}
	}
}
