package gguf

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weightfs/format/tensor"
)

func TestFaults(t *testing.T) {
	long := strings.Repeat("x", maxName+1)
	nested := v3(0, 1).key("deep", typeArray)
	for range 100_000 {
		nested.array(typeArray, 1)
	}
	for _, test := range []struct {
		name   string
		file   *builder
		reason error
		off    int64
		tensor string
		about  []string
	}{
		{"empty", &builder{}, tensor.ErrTruncated, 0, "", []string{"magic"}},
		{"version 0", build(0, binary.LittleEndian, 0, 0), tensor.ErrUnsupported, 4, "", []string{"version 0"}},
		{"version 4", build(4, binary.LittleEndian, 0, 0), tensor.ErrUnsupported, 4, "", []string{"version 4"}},
		{"version 4 big-endian", build(4, binary.BigEndian, 0, 0), tensor.ErrUnsupported, 4, "", []string{"version 4"}},
		{"keys beyond the file", v3(0, 1<<60), tensor.ErrTruncated, 24, "", []string{"truncated", "metadata keys"}},
		{"key beyond the file", v3(0, 1).u64(1<<63).data(1, 20), tensor.ErrTruncated, 32, "", []string{"truncated", "key"}},
		{"key too long", v3(0, 1).key(long, typeU8).u8(1), tensor.ErrTooLarge, 32, "", []string{"key", "65536"}},
		{"duplicate key", v3(0, 2).key("k", typeU8).u8(1).key("k", typeU8).u8(1), tensor.ErrMalformed, 38, "", []string{"duplicate", `"k"`}},
		{"value type", v3(0, 1).key("k", 13).u64(0), tensor.ErrMalformed, 33, "", []string{`"k"`, "type 13"}},
		{"element type", v3(0, 1).key("k", typeArray).array(13, 1).u64(0), tensor.ErrMalformed, 37, "", []string{`"k"`, "type 13"}},
		{"array of strings beyond the file", v3(0, 1).key("k", typeArray).array(typeString, 1<<61), tensor.ErrTruncated, 49, "", []string{"array"}},
		{"string beyond the file", v3(0, 1).key("k", typeString).u64(1<<64 - 1), tensor.ErrTruncated, 45, "", []string{"truncated", `"k"`, "18446744073709551615"}},
		{"nesting", nested, tensor.ErrTooLarge, 36 + 4 + 12*64, "", []string{"nested", "64"}},
		{"alignment of 24", v3(0, 1).key(alignmentKey, typeU32).u32(24), tensor.ErrMalformed, 24, "", []string{"24", "power of two"}},
		{"alignment array", v3(0, 1).key(alignmentKey, typeArray).array(typeU32, 0), tensor.ErrMalformed, 24, "", []string{"u32", "array"}},
		{"tensor name too long", v3(1, 0).tensor(long, 0, 0, 1).data(32, 4), tensor.ErrTooLarge, 32, "", []string{"tensor name"}},
		{"dimensions", v3(1, 0).tensor("t", 0, 0, make([]uint64, 65)...), tensor.ErrTooLarge, 24, "t", []string{"65", "64"}},
		{"info cut short", v3(1, 0).tensor("t", 0, 0, 1).cut(1), tensor.ErrTruncated, 49, "t", nil},
		{"dimension of 64 bits", v3(1, 0).tensor("t", 24, 0, 1<<63).data(32, 32), tensor.ErrTooLarge, 24, "t", []string{"9223372036854775808"}},
		{"overflow behind a zero", v3(1, 0).tensor("t", 24, 0, 1<<40, 1<<40, 0).data(32, 0), tensor.ErrTooLarge, 24, "t", []string{"overflow", "64 bits"}},
		{"overflow before a zero", v3(1, 0).tensor("t", 24, 0, 0, 1<<40, 1<<40).data(32, 0), tensor.ErrTooLarge, 24, "t", []string{"64 bits"}},
		{"bytes overflow", v3(1, 0).tensor("t", 28, 0, 1<<61).data(32, 32), tensor.ErrTooLarge, 24, "t", []string{"overflow", "63 bits"}},
		{"row of blocks", v3(1, 0).tensor("t", 12, 0, 255, 256).data(32, 1<<16), tensor.ErrMalformed, 24, "t", []string{"255", "256", "Q4_K"}},
		{"scalar of blocks", v3(1, 0).tensor("t", 12, 0).data(32, 144), tensor.ErrMalformed, 24, "t", []string{"Q4_K"}},
		{"one byte short", v3(1, 0).tensor("t", 0, 0, 2).data(32, 7), tensor.ErrTruncated, 64, "t", []string{"truncated", "8 bytes", "71 bytes of the 72", "1 are missing"}},
		{"offset at the end", v3(1, 0).tensor("t", 24, 32, 1).data(32, 32), tensor.ErrTruncated, 96, "t", []string{"truncated", "32", "96 bytes of the 97", "download the file again"}},
		{"data section missing", v3(1, 0).tensor("t", 24, 0, 1), tensor.ErrTruncated, 57, "t", []string{"truncated", "alignment 32"}},
		{"cut before the last two", v3(2, 0).tensor("t", 24, 0, 1).tensor("u", 24, 32, 40).data(32, 0), tensor.ErrTruncated, 96, "t", []string{"96 bytes of the 168", "72 are missing"}},
		{"offset beyond 63 bits", v3(1, 0).tensor("t", 24, 1<<63, 1).data(32, 32), tensor.ErrTooLarge, 24, "t", []string{"63 bits"}},
		{"end beyond 63 bits", v3(1, 0).tensor("t", 24, 1<<63-32, 1).data(32, 32), tensor.ErrTooLarge, 96, "t", []string{"63 bits"}},
		{"empty tensor far out", v3(1, 0).tensor("t", 24, 64, 0).data(32, 32), tensor.ErrTruncated, 96, "t", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, err := test.file.parse()
			fault, ok := errors.AsType[*tensor.FormatError](err)
			if !ok || h != nil {
				t.Fatalf("header %v, error %v", h, err)
			}
			if !errors.Is(err, test.reason) || fault.Off != test.off || fault.Tensor != test.tensor {
				t.Errorf("reason %v, offset %d, tensor %q; want %v, %d, %q: %v", fault.Err, fault.Off, fault.Tensor, test.reason, test.off, test.tensor, err)
			}
			for _, word := range test.about {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not mention %q", err, word)
				}
			}
		})
	}
}

// cut drops the last n bytes.
func (b *builder) cut(n int) *builder {
	b.Truncate(b.Len() - n)
	return b
}

func TestTruncationAtEveryByte(t *testing.T) {
	file := readFile(t, "v3-basic.gguf")
	for n := range file[:len(file)-32] {
		b := &builder{}
		b.Write(file[:n])
		if h, err := b.parse(); err == nil || h != nil {
			t.Fatalf("%d of %d bytes: header %v, error %v", n, len(file), h, err)
		}
	}
}

func TestUnknownTypesLeaveTheRestUsable(t *testing.T) {
	b := v3(5, 0)
	b.tensor("known", 24, 0, 3).tensor("bitnet", 36, 32, 64).tensor("fork", 145000, 1, 1<<62, 1<<62)
	b.tensor("old", 4, 1<<63, 32).tensor("scaled", 144, 64, 256, 2).data(32, 64+2*140)
	h, err := b.parse()
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Tensors) != 2 || h.Tensors[1].Bytes != 2*140 {
		t.Errorf("tensors %+v", h.Tensors)
	}
	want := []string{`"bitnet" is left out: ggml type 36`, `"fork" is left out: ggml type 145000`, `"old" is left out: ggml type 4 `}
	for i, w := range want {
		if !strings.Contains(h.Warnings[i], w) {
			t.Errorf("warning %q, want %q", h.Warnings[i], w)
		}
	}
	if dup, err := v3(2, 0).tensor("t", 36, 0, 1).tensor("t", 24, 0, 1).data(32, 1).parse(); err == nil {
		t.Errorf("accepted two tensors of one name: %+v", dup.Tensors)
	}
}

func TestOverlapIsTolerable(t *testing.T) {
	h, err := v3(4, 0).tensor("c", 24, 96, 32).tensor("a", 24, 0, 128).tensor("b", 24, 32, 1).tensor("none", 24, 64, 0).data(32, 128).parse()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, fault := range h.Tolerable {
		names = append(names, fault.Tensor)
		if !strings.Contains(fault.Error(), `overlaps tensor "a"`) {
			t.Error(fault)
		}
	}
	if !slices.Equal(names, []string{"b", "c"}) {
		t.Errorf("faults of %q", names)
	}
}

// The last padding may be missing, and then an empty tensor behind it lies past the end.
func TestEmptyTensorInMissingPadding(t *testing.T) {
	h, err := v3(2, 0).tensor("t", 24, 0, 5).tensor("none", 24, 32, 0).data(32, 5).parse()
	if err != nil {
		t.Fatal(err)
	}
	if got := h.Tensors[1].Extent; got != (tensor.Extent{Off: 96 + 5, Len: 0}) {
		t.Errorf("extent %+v", got)
	}
}

func TestOffsetsBeyond32Bits(t *testing.T) {
	b := v3(1, 0).tensor("t", 0, 1<<40, 1<<20, 1<<12)
	h, err := Parse(sparse{0: b.Bytes()}, 1<<41)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.Tensors[0].Extent; got != (tensor.Extent{Off: 96 + 1<<40, Len: 1 << 34}) {
		t.Errorf("extent %+v", got)
	}
}

func TestBigEndian(t *testing.T) {
	b := build(3, binary.BigEndian, 3, 0).tensor("w", 0, 0, 1).tensor("b", 24, 32, 1).tensor("q", 8, 64, 32).data(32, 98)
	h, err := b.parse()
	if err != nil {
		t.Fatal(err)
	}
	for i, swap := range []bool{true, false, false} {
		info := h.Tensors[i]
		if (info.Layout != nil && info.Layout.Swap) != swap || info.Extra.Get("stored_byteorder") != "big" {
			t.Errorf("%+v", info)
		}
	}
	if len(h.Warnings) != 1 || !strings.Contains(h.Warnings[0], "as stored") {
		t.Errorf("warnings %q", h.Warnings)
	}
}

func TestOriginalShape(t *testing.T) {
	for _, test := range []struct {
		dims []uint64
		want bool
	}{{[]uint64{2, 1, 4}, true}, {[]uint64{2, 2}, false}, {nil, false}, {[]uint64{1 << 63, 2, 8}, false}} {
		b := v3(1, 1).key(originalShapePrefix+"t", typeArray).array(typeU64, uint64(len(test.dims)))
		for _, n := range test.dims {
			b.u64(n)
		}
		h, err := b.tensor("t", 24, 0, 8).data(32, 8).parse()
		if err != nil {
			t.Fatal(err)
		}
		got, _ := h.Tensors[0].Extra.Get("orig_shape").([]uint64)
		if (got != nil) != test.want || got != nil && !slices.Equal(got, test.dims) {
			t.Errorf("%v: got %v", test.dims, got)
		}
	}
}

// A sparse file is zeros without end but for a few chunks.
type sparse map[int64][]byte

func (s sparse) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	for at, chunk := range s {
		if off <= at && at < off+int64(len(p)) {
			copy(p[at-off:], chunk)
		} else if at < off && off < at+int64(len(chunk)) {
			copy(p, chunk[off-at:])
		}
	}
	return len(p), nil
}

// The keys of interest begin a little before the limit, so that the test need not read up to it.
func TestHeaderOfSparseFileIsBounded(t *testing.T) {
	const hole = maxHeader - 1<<20
	for name, b := range map[string]*builder{
		"strings": (&builder{order: binary.LittleEndian}).key("k", typeArray).array(typeString, 1<<58),
		"arrays":  (&builder{order: binary.LittleEndian}).key("k", typeArray).array(typeArray, 1<<57),
		"bytes":   (&builder{order: binary.LittleEndian}).key("k", typeArray).array(typeU8, 1<<61),
		"string":  (&builder{order: binary.LittleEndian}).key("k", typeString).u64(1 << 61),
		"keys":    {},
	} {
		head := v3(1<<57, 1<<57).key("hole", typeArray).array(typeU8, hole)
		file := sparse{0: head.Bytes(), int64(head.Len()) + hole: b.Bytes()}
		start, before := time.Now(), allocated()
		h, err := Parse(file, 1<<62)
		if err == nil || h != nil {
			t.Errorf("%s: header %v, error %v", name, h, err)
		}
		if name != "keys" && !errors.Is(err, tensor.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if n := allocated() - before; n > 1<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s: %v", name, took)
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// failing breaks behind n bytes.
type failing struct {
	r io.ReaderAt
	n int64
}

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.n {
		return 0, os.ErrPermission
	}
	return f.r.ReadAt(p, off)
}

func TestReadErrorIsKept(t *testing.T) {
	b := v3(0, 1).key("k", typeU8).u8(1)
	if _, err := Parse(failing{sparse{0: b.Bytes()}, 10}, int64(b.Len())); !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
}

func TestSplit(t *testing.T) {
	for no, name := range []string{"split/m-00001-of-00002.gguf", "split/m-00002-of-00002.gguf"} {
		b := &builder{}
		b.Write(readFile(t, name))
		h, err := b.parse()
		if err != nil {
			t.Fatal(err)
		}
		gotNo, count, total, ok := Split(h)
		if gotNo != no || count != 2 || total != 2 || !ok {
			t.Errorf("%s: %d %d %d %v", name, gotNo, count, total, ok)
		}
	}
	if _, _, total, ok := Split(&tensor.Header{}); ok || total != -1 {
		t.Errorf("no set: %d %v", total, ok)
	}
	huge := tensor.Object{{Key: "split.no", Value: uint64(0)}, {Key: "split.count", Value: uint64(1 << 40)}}
	if _, _, _, ok := Split(&tensor.Header{Meta: huge}); ok {
		t.Error("a count of 2^40 is taken")
	}
}

func BenchmarkParseTensors(b *testing.B) {
	file := v3(200_000, 0)
	for i := range 200_000 {
		file.tensor("model.layers."+string(rune('a'+i%26))+".mlp.experts."+strconv.Itoa(i)+".weight", 24, uint64(i)*32, 8, 4)
	}
	file.data(32, 200_000*32)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := file.parse(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseTokenizer(b *testing.B) {
	file := v3(0, 2)
	for _, key := range []string{"tokenizer.ggml.tokens", "tokenizer.ggml.merges"} {
		file.key(key, typeArray).array(typeString, 262_144)
		for i := range 262_144 {
			file.str("token " + strconv.Itoa(i))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := file.parse(); err != nil {
			b.Fatal(err)
		}
	}
}
