package compare

import (
	"bytes"
	"io"
	"slices"
	"unsafe"

	"github.com/zeebo/xxh3"

	"weightfs/format"
	"weightfs/format/decode"
	"weightfs/format/tensor"
)

const (
	stepElems = 1 << 18 // that are read at once
	maxRow    = 1 << 18 // elements of a row whose place is looked for
	maxRows   = 1 << 18
)

// A stream reads two tensors side by side, piece by piece. A piece is a row where rows might be in another
// order, else some elements.
type stream struct {
	a, b    input
	elems   int64
	piece   int64
	rows    bool // a piece is a row
	differs bool // in bytes, of tensors of one type
	decodes bool
	values  values
	moved   []row // that are not equal in their place
}

// An input is one of the two tensors.
type input struct {
	fault func(error) error // says which tensor it is
	src   io.ReaderAt
	dtype tensor.DType
	unit  int64 // elements of a block
	size  int64 // bytes of a block
	bytes int64 // of all
	wide  bool  // float64 is needed
	parts int64
	raw   []byte
	f32   []float32
	f64   []float64
}

func (c *Comparison) newStream(i, j int, d *Difference) (*stream, error) {
	s := &stream{}
	var err error
	if s.a, err = c.newInput(c.a, i, d.A); err == nil {
		s.b, err = c.newInput(c.b, j, d.B)
	}
	if err != nil {
		return nil, err
	}
	n, _ := tensor.Elements(d.A.Shape)
	s.elems = int64(n)
	s.decodes = s.a.parts > 0 && s.b.parts > 0
	if !s.decodes { // bytes of a type that is not decoded
		s.elems = s.a.bytes
		s.a.unit, s.a.size, s.b.unit, s.b.size = 1, 1, 1, 1
	}
	if s.a.wide || s.b.wide {
		s.a.wide, s.b.wide = true, true
	}
	s.cut(d.A.Shape, d.B.Shape)
	return s, nil
}

func (c *Comparison) newInput(ckpt *format.Checkpoint, i int, side *Side) (input, error) {
	t := ckpt.Tensor(i)
	content, err := ckpt.Elements(i)
	if err != nil {
		return input{}, err
	}
	in := input{
		fault: func(err error) error { return ckpt.Fault(i, err) }, dtype: t.DType, bytes: t.Bytes,
		src:   format.Watched{ReaderAt: format.ContentReader{Content: content}, Read: c.progress},
		parts: int64(side.parts), wide: !decode.Supported(t.DType),
	}
	in.unit, in.size = t.DType.Block()
	return in, nil
}

// cut chooses the piece: a slice of dimension 0, else of the last one, where both shapes have such
// rows, and they are whole blocks.
func (s *stream) cut(a, b []uint64) {
	unit := max(s.a.unit, s.b.unit) // powers of two
	s.piece = max(unit, 1<<14)
	if !s.decodes || !slices.Equal(a, b) || len(a) < 2 || s.elems == 0 {
		return
	}
	row := s.elems / int64(a[0])
	if row > maxRow {
		row = int64(a[len(a)-1])
	}
	if count := s.elems / row; row <= maxRow && row%unit == 0 && count > 1 && count <= maxRows {
		s.piece, s.rows = row, true
	}
}

func (s *stream) run() error {
	step := max(1, stepElems/s.piece) * s.piece
	for first := int64(0); first < s.elems; first += step {
		n := min(step, s.elems-first)
		if err := s.a.read(first, n); err != nil {
			return err
		}
		if err := s.b.read(first, n); err != nil {
			return err
		}
		if s.a.dtype == s.b.dtype && bytes.Equal(s.a.raw, s.b.raw) {
			continue
		}
		s.differs = true
		for at := int64(0); s.decodes && at < n; at += s.piece {
			s.compare((first+at)/s.piece, at, min(s.piece, n-at))
		}
	}
	return nil
}

// compare compares a piece of what has been read: n elements from at on.
func (s *stream) compare(index, at, n int64) {
	a, b := s.a.part(at, n), s.b.part(at, n)
	if s.a.dtype == s.b.dtype && bytes.Equal(a, b) {
		return
	}
	before := s.values.Differing
	s.a.decode(a, n)
	s.b.decode(b, n)
	if s.a.wide {
		add(&s.values, s.a.f64, s.b.f64)
	} else {
		add(&s.values, s.a.f32, s.b.f32)
	}
	switch {
	case !s.rows:
	case s.a.dtype == s.b.dtype:
		s.moved = append(s.moved, row{index: index, a: mark{hash: xxh3.Hash128(a)}, b: mark{hash: xxh3.Hash128(b)}})
	case s.values.Differing > before:
		s.moved = append(s.moved, row{index: index, a: s.a.mark(), b: s.b.mark()})
	}
}

// read reads n elements from first on, which begin a block.
func (in *input) read(first, n int64) error {
	off := first / in.unit * in.size
	size := min((n+in.unit-1)/in.unit*in.size, in.bytes-off)
	in.raw = slices.Grow(in.raw[:0], int(size))[:size]
	return in.fault(tensor.ReadFull(in.src, in.raw, off))
}

// part is the bytes of n elements from at on of what was read.
func (in *input) part(at, n int64) []byte {
	return in.raw[at/in.unit*in.size : min((at+n+in.unit-1)/in.unit*in.size, int64(len(in.raw)))]
}

// decode makes numbers of the bytes of n elements.
func (in *input) decode(p []byte, n int64) {
	if in.wide {
		n *= in.parts
		in.f64 = slices.Grow(in.f64[:0], int(n))[:n]
		decode.Values(in.dtype, in.f64, p)
		return
	}
	in.f32 = slices.Grow(in.f32[:0], int(n))[:n]
	decode.Floats(in.dtype, in.f32, p)
}

// memory is the bytes of numbers, to be hashed.
func memory[F float32 | float64](v []F) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(F))))
}
