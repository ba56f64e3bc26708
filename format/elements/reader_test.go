package elements

import (
	"bytes"
	"errors"
	"io"
	"math/bits"
	"slices"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"weightfs/format/tensor"
)

// naive makes all elements one by one: the model that Reader is compared with.
func naive(storage []byte, t *tensor.Info) []byte {
	_, elem := t.DType.Block()
	index := make([]uint64, len(t.Shape))
	var out []byte
	for n := t.Bytes / elem; n > 0; n-- {
		at := int64(0)
		for i, x := range index {
			at += int64(x) * t.Layout.Strides[i]
		}
		e := slices.Clone(storage[at*elem : (at+1)*elem])
		naiveChange(e, t)
		out = append(out, e...)
		for i := len(index) - 1; i >= 0; i-- {
			if index[i]++; index[i] < t.Shape[i] {
				break
			}
			index[i] = 0
		}
	}
	return out
}

func naiveChange(e []byte, t *tensor.Info) {
	for w := range slices.Chunk(e, t.DType.Word()) {
		if t.Layout.Swap {
			slices.Reverse(w)
		}
		switch {
		case !t.Layout.Neg:
		case t.DType.Kind() == tensor.Float || t.DType.Kind() == tensor.Complex:
			w[len(w)-1] ^= 0x80
		default:
			value := uint64(0)
			for i, b := range w {
				value |= uint64(b) << (8 * i)
			}
			for i := range w {
				w[i] = byte(-value >> (8 * i))
			}
		}
	}
	if t.Layout.Conj {
		e[len(e)-1] ^= 0x80
	}
}

// A drawn tensor has any strides, overlapping ones too, over a storage just large enough.
func drawTensor(t *rapid.T) (*tensor.Info, []byte) {
	d := rapid.SampledFrom([]tensor.DType{
		tensor.U8, tensor.I16, tensor.BF16, tensor.F32, tensor.I64, tensor.C64, tensor.C128, tensor.U32,
	}).Draw(t, "dtype")
	_, elem := d.Block()
	rank := rapid.IntRange(0, 5).Draw(t, "rank")
	info := &tensor.Info{DType: d, Layout: &tensor.Layout{Strides: []int64{}}}
	last, total := int64(0), uint64(1)
	for range rank {
		dim := rapid.Uint64Range(0, max(1, 4000/total)).Draw(t, "dim")
		if rapid.Bool().Draw(t, "small") {
			dim = min(dim, 4)
		}
		stride := rapid.OneOf(rapid.Int64Range(0, 9), rapid.Int64Range(0, 3000)).Draw(t, "stride")
		info.Shape, info.Layout.Strides = append(info.Shape, dim), append(info.Layout.Strides, stride)
		total *= max(dim, 1)
		last += int64(max(dim, 1)-1) * stride
	}
	if rapid.Bool().Draw(t, "permuted") {
		last = permute(t, info)
	}
	info.Bytes, _ = d.Size(info.Shape, false)
	storage := make([]byte, (last+1)*elem)
	for i := range storage {
		storage[i] = byte(bits.RotateLeft32(uint32(i)*2654435761, 11))
	}
	info.Layout.Swap = rapid.Bool().Draw(t, "swap")
	info.Layout.Neg = rapid.Bool().Draw(t, "neg")
	info.Layout.Conj = d.Kind() == tensor.Complex && rapid.Bool().Draw(t, "conj")
	return info, storage
}

// permute gives info the strides of a contiguous tensor in another order of dimensions.
func permute(t *rapid.T, info *tensor.Info) (last int64) {
	order := make([]int, len(info.Shape))
	for i := range order {
		order[i] = i
	}
	stride := int64(1)
	for _, i := range rapid.Permutation(order).Draw(t, "order") {
		info.Layout.Strides[i] = stride
		stride *= int64(max(info.Shape[i], 1))
	}
	return stride - 1
}

func TestReaderAgainstNaiveGather(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		info, storage := drawTensor(t)
		info.Extent = tensor.Extent{Off: rapid.Int64Range(0, 3).Draw(t, "offset"), Len: int64(len(storage))}
		r, err := Reader(bytes.NewReader(append(make([]byte, info.Extent.Off), storage...)), info, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := naive(storage, info)
		for range 8 {
			off := rapid.IntRange(0, len(want)).Draw(t, "off")
			n := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, len(want)+5)).Draw(t, "n")
			checkRead(t, r, want, off, n)
		}
		checkRead(t, r, want, 0, len(want))
	})
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// checkRead demands what io.ReaderAt promises: all that is asked for, or all up to the end and EOF.
func checkRead(t failer, r io.ReaderAt, want []byte, off, n int) {
	t.Helper()
	p := bytes.Repeat([]byte{0xee}, n)
	got, err := r.ReadAt(p, int64(off))
	should := want[off:min(off+n, len(want))]
	if got != len(should) || !bytes.Equal(p[:got], should) {
		t.Fatalf("%d bytes at %d: got %d, %v", n, off, got, err)
	}
	if short := got < n; short != errors.Is(err, io.EOF) || !short && err != nil {
		t.Fatalf("%d bytes at %d of %d: error %v", n, off, len(want), err)
	}
}

func TestReaderBroadcast(t *testing.T) {
	info := &tensor.Info{
		DType: tensor.F32, Shape: []uint64{1 << 40}, Bytes: 1 << 42, Extent: tensor.Extent{Len: 4},
		Layout: &tensor.Layout{Strides: []int64{0}},
	}
	r, err := Reader(bytes.NewReader([]byte{1, 2, 3, 4}), info, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 1<<20)
	if n, err := r.ReadAt(p, 1<<42-1<<20); n != len(p) || err != nil {
		t.Fatal(n, err)
	}
	if !bytes.Equal(p, bytes.Repeat([]byte{1, 2, 3, 4}, 1<<18)) {
		t.Fatal("other bytes")
	}
}

func TestReaderWide(t *testing.T) {
	for _, tt := range []struct {
		shape   []uint64
		strides []int64
		blocks  bool
	}{
		{[]uint64{700, 1100}, []int64{1, 700}, true},
		{[]uint64{700, 1100}, []int64{1100, 1}, false},
		{[]uint64{700, 1100}, []int64{0, 1}, false},
		{[]uint64{700, 1100}, []int64{1, 0}, false},
		{[]uint64{1100, 1200}, []int64{1, 1100}, true},
		{[]uint64{3, 600, 2, 700}, []int64{1, 6, 3, 3600}, true},
		{[]uint64{300, 5}, []int64{5000, 2}, false},
	} {
		info := &tensor.Info{DType: tensor.F32, Shape: tt.shape, Layout: &tensor.Layout{Strides: tt.strides}}
		info.Bytes, _ = info.DType.Size(info.Shape, false)
		storage := wideStorage(info)
		info.Extent.Len = int64(len(storage))
		r, err := Reader(bytes.NewReader(storage), info, nil)
		if err != nil {
			t.Fatal(err)
		}
		if g, err := newGather(nil, info.Extent.Len, info); err != nil || g.inBlocks != tt.blocks {
			t.Errorf("%v %v: gathered in blocks: %v, %v", tt.shape, tt.strides, g.inBlocks, err)
		}
		want := naive(storage, info)
		checkRead(t, r, want, 0, len(want))
		for _, n := range []int{1, 4096, 100_000, 1 << 20} {
			for off := 777 % n; off < len(want); off += max(n, len(want)/9) {
				checkRead(t, r, want, off, n)
			}
		}
		checkRead(t, r, want, len(want)-99, 200)
	}
}

// wideStorage is what the strides of info reach, no two neighbours alike.
func wideStorage(info *tensor.Info) []byte {
	last := int64(0)
	for i, dim := range info.Shape {
		last += int64(dim-1) * info.Layout.Strides[i]
	}
	storage := make([]byte, (last+1)*4)
	for i := range storage {
		storage[i] = byte(i>>8 ^ i*7 ^ i>>16)
	}
	return storage
}

func TestReaderBlocksFailOnce(t *testing.T) {
	const rows, cols = 1300, 1200
	src := &countingSource{ReaderAt: bytes.NewReader(make([]byte, rows*cols*4))}
	r, err := Reader(src, &tensor.Info{
		DType: tensor.F32, Shape: []uint64{rows, cols}, Bytes: rows * cols * 4,
		Extent: tensor.Extent{Len: rows * cols * 4}, Layout: &tensor.Layout{Strides: []int64{1, rows}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	src.fail.Store(true)
	if n, err := r.ReadAt(make([]byte, 8), 0); n != 0 || !errors.Is(err, syscall.EIO) {
		t.Fatal(n, err)
	}
	src.fail.Store(false)
	checkRead(t, r, make([]byte, rows*cols*4), 0, 8)
}

func TestReaderSigns(t *testing.T) {
	tests := []struct {
		d    tensor.DType
		in   []byte
		want []byte
	}{
		{tensor.F8_E4M3, []byte{0x00, 0x38, 0xb8}, []byte{0x80, 0xb8, 0x38}},
		{tensor.F8_E4M3FNUZ, []byte{0x00, 0x80, 0x38}, []byte{0x00, 0x80, 0xb8}},
		{tensor.F4, []byte{0x1a}, []byte{0x92}},
		{tensor.I8, []byte{0x80, 0, 1}, []byte{0x80, 0, 0xff}},
		{tensor.I32, []byte{0, 1, 0, 0}, []byte{0, 0xff, 0xff, 0xff}},
	}
	for _, tt := range tests {
		elems, size := tt.d.Block()
		info := &tensor.Info{
			DType: tt.d, Shape: []uint64{uint64(int64(len(tt.in)) / size * elems)}, Bytes: int64(len(tt.in)),
			Extent: tensor.Extent{Len: int64(len(tt.in))}, Layout: &tensor.Layout{Neg: true},
		}
		r, err := Reader(bytes.NewReader(tt.in), info, nil)
		if err != nil {
			t.Fatal(tt.d, err)
		}
		checkRead(t, r, tt.want, 0, len(tt.want))
	}
}

func TestReaderRefuses(t *testing.T) {
	ext := func(n int64) tensor.Extent { return tensor.Extent{Len: n} }
	l := func(l tensor.Layout) *tensor.Layout { return &l }
	tests := []struct {
		name string
		info tensor.Info
	}{
		{"range shorter than the elements", tensor.Info{DType: tensor.F32, Shape: []uint64{2}, Bytes: 8, Extent: ext(4)}},
		{"negative stride", tensor.Info{DType: tensor.U8, Shape: []uint64{2}, Bytes: 2, Extent: ext(2), Layout: l(tensor.Layout{Strides: []int64{-1}})}},
		{"stride past the storage", tensor.Info{DType: tensor.U8, Shape: []uint64{2}, Bytes: 2, Extent: ext(2), Layout: l(tensor.Layout{Strides: []int64{2}})}},
		{"stride that overflows", tensor.Info{DType: tensor.U8, Shape: []uint64{3}, Bytes: 3, Extent: ext(2), Layout: l(tensor.Layout{Strides: []int64{1 << 62}})}},
		{"strides of another rank", tensor.Info{DType: tensor.U8, Shape: []uint64{1}, Bytes: 1, Extent: ext(2), Layout: l(tensor.Layout{Strides: []int64{}})}},
		{"scalar of an empty storage", tensor.Info{DType: tensor.U8, Bytes: 1, Layout: l(tensor.Layout{Strides: []int64{}})}},
		{"strided blocks", tensor.Info{DType: tensor.Q4_0, Shape: []uint64{32}, Bytes: 18, Extent: ext(18), Layout: l(tensor.Layout{Strides: []int64{1}})}},
		{"swapped blocks", tensor.Info{DType: tensor.Q4_0, Shape: []uint64{32}, Bytes: 18, Extent: ext(18), Layout: l(tensor.Layout{Swap: true})}},
		{"half an element", tensor.Info{DType: tensor.F32, Shape: []uint64{1}, Bytes: 3, Extent: ext(4), Layout: l(tensor.Layout{Swap: true})}},
		{"negated scales", tensor.Info{DType: tensor.F8_E8M0, Shape: []uint64{1}, Bytes: 1, Extent: ext(1), Layout: l(tensor.Layout{Neg: true})}},
		{"conjugated reals", tensor.Info{DType: tensor.F32, Shape: []uint64{1}, Bytes: 4, Extent: ext(4), Layout: l(tensor.Layout{Conj: true})}},
		{"packed without a store", tensor.Info{DType: tensor.U8, Shape: []uint64{1}, Bytes: 1, Extent: ext(4), Layout: l(tensor.Layout{Pack: tensor.Deflate, Unpacked: 1})}},
		{"open range", tensor.Info{DType: tensor.U8, Shape: []uint64{1}, Bytes: 1, Extent: ext(-1)}},
	}
	for _, tt := range tests {
		if r, err := Reader(bytes.NewReader(make([]byte, 64)), &tt.info, nil); err == nil || r != nil {
			t.Errorf("%s: %v, %v", tt.name, r, err)
		}
	}
}

func TestReaderShortSource(t *testing.T) {
	for _, strides := range [][]int64{nil, {1, 2}} {
		info := &tensor.Info{
			DType: tensor.F32, Shape: []uint64{2, 2}, Bytes: 16, Extent: tensor.Extent{Off: 2, Len: 16},
			Layout: &tensor.Layout{Strides: strides, Swap: true},
		}
		r, err := Reader(bytes.NewReader(make([]byte, 17)), info, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := r.ReadAt(make([]byte, 16), 0); !errors.Is(err, io.ErrUnexpectedEOF) || n == 16 {
			t.Errorf("strides %v: %d, %v", strides, n, err)
		}
	}
}

func BenchmarkReader(b *testing.B) {
	const side = 4096
	f := tempFile(b, make([]byte, side*side*4))
	for _, bm := range []struct {
		name    string
		shape   []uint64
		strides []int64
		swap    bool
	}{
		{"plain", []uint64{side, side}, nil, false},
		{"swap", []uint64{side, side}, nil, true},
		{"transposed", []uint64{side, side}, []int64{1, side}, false},
		{"sliced", []uint64{side, side / 2}, []int64{side, 1}, false},
		{"every second", []uint64{side, side / 2}, []int64{side, 2}, false},
		{"channels last", []uint64{512, 512, 3, 3}, []int64{512 * 9, 1, 3 * 512, 512}, false},
		{"few channels last", []uint64{side * 4, 3, 16, 16}, []int64{3 * 256, 1, 3 * 16, 3}, false},
		{"broadcast", []uint64{1 << 20, 16}, []int64{0, 1}, false},
	} {
		b.Run(bm.name, func(b *testing.B) {
			info := &tensor.Info{
				DType: tensor.F32, Shape: bm.shape, Extent: tensor.Extent{Len: side * side * 4},
				Layout: &tensor.Layout{Strides: bm.strides, Swap: bm.swap},
			}
			info.Bytes, _ = info.DType.Size(info.Shape, false)
			r, err := Reader(f, info, nil)
			if err != nil {
				b.Fatal(err)
			}
			p := make([]byte, 1<<20)
			b.SetBytes(int64(len(p)))
			off := int64(0)
			for b.Loop() {
				if _, err := r.ReadAt(p, off); err != nil && err != io.EOF {
					b.Fatal(err)
				}
				if off += int64(len(p)); off >= info.Bytes {
					off = 0
				}
			}
		})
	}
}
