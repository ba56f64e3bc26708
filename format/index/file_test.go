package index

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"weightfs/format/tensor"
)

// everything is an index in which every field of every section has a value.
func everything(t testing.TB) (*Index, []tensor.Info) {
	infos := []tensor.Info{
		{Name: "a.b", DType: tensor.F32, Shape: []uint64{2, 3}, Bytes: 24, Extent: tensor.Extent{Off: 100, Len: 24}},
		{Name: "é/x", DType: tensor.BF16, Shape: []uint64{3, 2}, Bytes: 12, Extent: tensor.Extent{Off: 7, Len: 40},
			Layout: &tensor.Layout{Pack: tensor.Deflate, Unpacked: 99, Skip: 80, CRC32: 0xdeadbeef, Strides: []int64{1, 3}, Swap: true, Neg: true, Conj: true},
			Extra:  tensor.Object{{Key: "k", Value: "v"}}},
		{Name: "scalar", DType: tensor.U8, Shape: []uint64{}, Bytes: 1, Extent: tensor.Extent{Off: 1, Len: 1}},
		{Name: "deep", DType: tensor.I64, Shape: []uint64{1, 1, 1, 1, 1, 2}, Bytes: 16, Extent: tensor.Extent{Off: 9, Len: 16}},
	}
	x, err := Build([]Source{{Header: &tensor.Header{Tensors: infos}}})
	if err != nil {
		t.Fatal(err)
	}
	x.MarkViews(1, func(i uint32) Flags { return Flags(i) })
	return x, infos
}

func TestInfoIsWhatTheParserSaid(t *testing.T) {
	x, infos := everything(t)
	for i, want := range infos {
		if want.Layout != nil {
			want.Extra = nil
		}
		if got := x.Info(uint32(i)); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if got := x.Extra(1); got != `"k": "v"` {
		t.Errorf("extra is %q", got)
	}
}

func TestFileHoldsTheIndex(t *testing.T) {
	x, _ := everything(t)
	var b bytes.Buffer
	if err := x.Write(&b, []byte("head")); err != nil {
		t.Fatal(err)
	}
	head, again, err := Read(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || string(head) != "head" {
		t.Fatalf("head %q, %v", head, err)
	}
	if !reflect.DeepEqual(x, again) {
		t.Errorf("got %+v, want %+v", again, x)
	}
}

func TestDamagedFileIsNoIndex(t *testing.T) {
	x, _ := everything(t)
	var b bytes.Buffer
	if err := x.Write(&b, []byte("head")); err != nil {
		t.Fatal(err)
	}
	for i := range b.Bytes() {
		damaged := bytes.Clone(b.Bytes())
		damaged[i] ^= 0x40
		if _, got, err := Read(bytes.NewReader(damaged), int64(len(damaged))); !errors.Is(err, ErrDamaged) || got != nil {
			t.Fatalf("byte %d: %v", i, err)
		}
		if _, _, err := Read(bytes.NewReader(b.Bytes()[:i]), int64(i)); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	x, _ := everything(f)
	var b bytes.Buffer
	if err := x.Write(&b, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		head, x, err := Read(bytes.NewReader(data), int64(len(data)))
		if err != nil && (head != nil || x != nil) {
			t.Fatal("an error and an index")
		}
	})
}
