package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"github.com/zeebo/xxh3"

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

// A section without elements that lies at the end of the file, where no element has room, was made a slice of
// its place: the race detector takes that for a fault, by the length of the head.
func TestEmptySectionsOfAFile(t *testing.T) {
	x, err := Build([]Source{{Header: &tensor.Header{}}})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2048 {
		var b bytes.Buffer
		if err := x.Write(&b, bytes.Repeat([]byte{' '}, n)); err != nil {
			t.Fatal(err)
		}
		_, again, err := Read(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if again.Records != nil || again.layouts != nil || len(again.Nodes) != len(x.Nodes) {
			t.Fatalf("head of %d bytes: got %+v", n, again)
		}
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
		checkRead(t, data)
		checkRead(t, sealed(data))
	})
}

// checkRead: an error or an index, which is the same when it is written and read again, in memory of the
// file's size.
func checkRead(t *testing.T, data []byte) {
	before := allocated()
	head, x, err := Read(bytes.NewReader(data), int64(len(data)))
	if n := allocated() - before; n > 64<<10+4*uint64(len(data)) {
		t.Errorf("%d bytes allocated for a file of %d", n, len(data))
	}
	if (err != nil) != (x == nil) || err != nil && (head != nil || !errors.Is(err, ErrDamaged)) {
		t.Fatalf("%v, %v and %v", head, x, err)
	}
	if err != nil {
		return
	}
	var b bytes.Buffer
	if err := x.Write(&b, head); err != nil {
		t.Fatal(err)
	}
	head2, again, err := Read(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || !bytes.Equal(head2, head) || !reflect.DeepEqual(again, x) {
		t.Errorf("written and read again: %v", err)
	}
}

// sealed gives a file of one chunk the checksums of what it holds, so that what is behind them is reached.
func sealed(data []byte) []byte {
	const body = headerSize + 8
	if len(data) < body {
		return data
	}
	data = bytes.Clone(data)
	binary.NativeEndian.PutUint64(data[headerSize:], xxh3.Hash(data[body:]))
	sums := append(bytes.Clone(data[:headerSize-8]), data[headerSize:body]...)
	binary.NativeEndian.PutUint64(data[headerSize-8:], xxh3.Hash(sums))
	return data
}
