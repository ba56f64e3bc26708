package gguf

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weightfs/format/tensor"
)

func TestValues(t *testing.T) {
	long := strings.Repeat("long", 1<<15)
	b := v3(0, 14)
	b.key("u8", typeU8).u8(200).key("i8", typeI8).u8(200).key("u16", typeU16).u16(1<<15).key("i16", typeI16).u16(1 << 15)
	b.key("u32", typeU32).u32(1<<31).key("i32", typeI32).u32(1<<31).key("f32", typeF32).u32(math.Float32bits(0.1))
	b.key("bool", typeBool).u8(2).key("string", typeString).str("\xff\x00").key("", typeArray).array(typeBool, 2).u8(0).u8(1)
	b.key("u64", typeU64).u64(1<<63).key("i64", typeI64).u64(1<<63).key("f64", typeF64).u64(math.Float64bits(0.1))
	b.key("long", typeString).str(long)
	h, err := b.parse()
	if err != nil {
		t.Fatal(err)
	}
	want := tensor.Object{
		{Key: "u8", Value: uint64(200)}, {Key: "i8", Value: int64(-56)}, {Key: "u16", Value: uint64(1 << 15)}, {Key: "i16", Value: int64(-1 << 15)},
		{Key: "u32", Value: uint64(1 << 31)}, {Key: "i32", Value: int64(-1 << 31)}, {Key: "f32", Value: 0.1},
		{Key: "bool", Value: true}, {Key: "string", Value: "\xff\x00"}, {Key: "", Value: []any{false, true}},
		{Key: "u64", Value: uint64(1 << 63)}, {Key: "i64", Value: int64(math.MinInt64)}, {Key: "f64", Value: 0.1},
	}
	if diff := cmp.Diff(want, h.Meta[:13]); diff != "" {
		t.Error(diff)
	}
	if _, lazy := h.Meta[13].Value.(tensor.Lazy); !lazy || rendered(t, h.Meta[13].Value) != long {
		t.Errorf("%T", h.Meta[13].Value)
	}
}

// tokens has arrays on both sides of the limit, and arrays of arrays.
func tokens(version uint32, order binary.AppendByteOrder) *builder {
	b := build(version, order, 0, 3)
	b.key("tokens", typeArray).array(typeString, 100)
	for range 100 {
		b.str("tok\u00e9n")
	}
	b.key("nested", typeArray).array(typeArray, 2).array(typeU16, 2).u16(1).u16(65535).array(typeArray, 1).array(typeString, 1).str("in")
	return b.key("after", typeU8).u8(7)
}

func TestLazyValues(t *testing.T) {
	for version := uint32(1); version <= 3; version++ {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			h, err := tokens(version, order).parse()
			if err != nil {
				t.Fatal(err)
			}
			want := `{"tokens": [` + strings.TrimSuffix(strings.Repeat(`"tokén", `, 100), ", ") + `], "nested": [[1, 65535], [["in"]]], "after": 7}`
			if got := string(tensor.AppendJSON(nil, h.Meta)); got != want {
				t.Errorf("version %d: %s", version, got)
			}
		}
	}
}

func TestLazyValueIsSafeForConcurrentUse(t *testing.T) {
	h, err := tokens(3, binary.LittleEndian).parse()
	if err != nil {
		t.Fatal(err)
	}
	want := tensor.AppendJSON(nil, h.Meta)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := tensor.AppendJSON(nil, h.Meta); !bytes.Equal(got, want) {
				t.Errorf("got %s", got)
			}
		})
	}
	wg.Wait()
}

// The file may be rewritten behind a lazy value: then a fault is shown, in valid JSON.
func TestLazyValueOfChangedFile(t *testing.T) {
	file := tokens(3, binary.LittleEndian).Bytes()
	h, err := Parse(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for i := 64; i < len(file); i++ {
		file[i] = 9
	}
	for _, kv := range h.Meta[:2] {
		if got, _ := rendered(t, kv.Value).(string); !strings.Contains(got, "offset") {
			t.Errorf("%s: got %q", kv.Key, got)
		}
	}
}

func TestWiden(t *testing.T) {
	for f, want := range map[float32]string{1e-6: "0.000001", 0.1: "0.1", 1e9: "1000000000", 16777216: "16777216", -0.3: "-0.3", 1e-45: "1e-45", math.MaxFloat32: "3.4028235e+38"} {
		wide := widen(f)
		if float32(wide) != f || string(tensor.AppendJSON(nil, wide)) != want {
			t.Errorf("%g: got %s, want %s", f, tensor.AppendJSON(nil, wide), want)
		}
	}
}

func TestHugeValueIsDescribed(t *testing.T) {
	b := v3(0, 1).key("k", typeArray).array(typeU8, maxShown+1)
	h, err := Parse(sparse{0: b.Bytes()}, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	if got := rendered(t, h.Meta[0].Value); got != "(array of 33554445 bytes at offset 37)" {
		t.Errorf("got %q", got)
	}
}
