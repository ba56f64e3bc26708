package decode

import (
	"bytes"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weightfs/format/tensor"
)

// hostile takes a good case and spoils what a file can say: shapes, types, lengths, bytes and
// descriptions. Nothing may panic, and what is read is whole or an error.
func hostile(t *rapid.T, cases []schemeCase) {
	c := rapid.SampledFrom(cases).Draw(t, "case")
	c.Tensors = maps.Clone(c.Tensors)
	factor := rapid.SampledFrom([]uint64{1, 1, 1, 3, 1 << 20, 1 << 40, 1 << 61}).Draw(t, "factor")
	spoilt := rapid.SampledFrom(slices.Sorted(maps.Keys(c.Tensors))).Draw(t, "spoilt")
	for name, one := range c.Tensors {
		one.Shape, one.Data = slices.Clone(one.Shape), slices.Clone(one.Data)
		if len(one.Shape) > 1 {
			one.Shape[0] *= factor
		}
		if name == spoilt {
			spoil(t, one.Shape, &one.DType, &one.Data)
		}
		c.Tensors[name] = one
	}
	s, ok := c.scheme()
	if !ok {
		return
	}
	n, err := tensor.Elements(s.Shape)
	if err != nil || n == 0 || n > math.MaxInt64/4 {
		t.Fatalf("shape %v", s.Shape)
	}
	p := make([]byte, rapid.IntRange(0, 3*chunk).Draw(t, "n"))
	off := rapid.Int64Range(0, int64(4*n)-1).Draw(t, "off")
	got, err := c.reader(s).ReadAt(p, off)
	if got < len(p) && err == nil || err == io.EOF && int64(got) != int64(4*n)-off {
		t.Fatalf("%s: %d of %d bytes, %v", s.Kind, got, len(p), err)
	}
}

// spoil changes one thing of a tensor.
func spoil(t *rapid.T, shape []uint64, dtype *string, data *[]byte) {
	switch what := rapid.IntRange(0, 4).Draw(t, "what"); {
	case what == 0 && len(shape) > 0:
		dims := []uint64{0, 1, 16, 32, 128, 1 << 31, 1 << 58, 1 << 62, 1 << 63, math.MaxUint64}
		shape[rapid.IntRange(0, len(shape)-1).Draw(t, "dim")] = rapid.SampledFrom(dims).Draw(t, "size")
	case what == 1:
		*dtype = rapid.SampledFrom([]string{"U8", "I32", "F16", "F32", "F8_E8M0", "F4", "Q4_K", "none"}).Draw(t, "type")
	case what == 2:
		*data = (*data)[:rapid.IntRange(0, len(*data)).Draw(t, "length")]
	case what == 3 && bytes.HasPrefix(*data, []byte("{")):
		numbers := []string{"0", "-1", "1", "9223372036854775807", "1e300", "null", `"x"`}
		at := regexp.MustCompile(`[0-9.]+`).FindAllIndex(*data, -1)
		one := rapid.SampledFrom(at).Draw(t, "number")
		number := rapid.SampledFrom(numbers).Draw(t, "value")
		*data = slices.Concat((*data)[:one[0]], []byte(number), (*data)[one[1]:])
	case len(*data) > 0:
		(*data)[rapid.IntRange(0, len(*data)-1).Draw(t, "at")] ^= rapid.Byte().Draw(t, "bits")
	}
}

func TestSchemeHostile(t *testing.T) {
	cases := schemeCases(t)
	rapid.Check(t, func(t *rapid.T) { hostile(t, cases) })
}

func FuzzScheme(f *testing.F) {
	cases := schemeCases(f)
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { hostile(t, cases) }))
}

func FuzzReader(f *testing.F) {
	for _, d := range supported() {
		_, size := d.Block()
		f.Add(uint8(d), bytes.Repeat([]byte{0x5a}, int(3*size)), int64(3), 100)
	}
	f.Fuzz(func(t *testing.T, kind uint8, src []byte, off int64, n int) {
		d := tensor.DType(kind)
		if !d.Valid() || !Supported(d) || n < 0 || n > 1<<16 {
			return
		}
		elems, size := d.Block()
		want := decodeAll(d, src[:int64(len(src))/size*size])
		p := make([]byte, n)
		got, err := Reader(d, int64(len(src))/size*elems, bytes.NewReader(src)).ReadAt(p, off)
		if off < 0 || off >= int64(len(want)) {
			if got != 0 || err == nil {
				t.Fatalf("%d bytes at %d of %d, %v", got, off, len(want), err)
			}
			return
		}
		if rest := want[off:]; got != min(n, len(rest)) || !bytes.Equal(p[:got], rest[:got]) {
			t.Fatalf("%v: wrong bytes at %d", d, off)
		}
	})
}
