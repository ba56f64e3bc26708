package decode

import (
	"fmt"
	"io"
	"sync"

	"weightfs/format/tensor"
)

// chunk is the number of elements that are decoded at a time: 64 KiB, so that what is decoded for
// the scratch buffer is still in the cache when it is copied.
const chunk = 16 << 10

// A decoder makes len(dst) elements from element first on.
type decoder func(s *scratch, dst []float32, first int64) error

// A reader shows float32 elements that are made on read, as little-endian bytes. They are made in
// whole units, and at most chunk at once.
type reader struct {
	elems  int64
	unit   int64 // divides elems and chunk
	decode decoder
}

// scratch is the memory of one read. Reads run at once, so each takes its own from the pool.
type scratch struct {
	out    [chunk]float32
	raw    [3][]byte // the last is what floats decodes from
	values [3][]float32
}

var pool = sync.Pool{New: func() any { return new(scratch) }}

// read fills buffer i with n bytes of src.
func (s *scratch) read(i int, src io.ReaderAt, off, n int64) ([]byte, error) {
	if int64(cap(s.raw[i])) < n {
		s.raw[i] = make([]byte, n)
	}
	p := s.raw[i][:n]
	return p, tensor.ReadFull(src, p, off)
}

// floats fills buffer i with n elements of a supported type from element first of src on; both are
// whole blocks.
func (s *scratch) floats(i int, d tensor.DType, src io.ReaderAt, first, n int64) ([]float32, error) {
	elems, size := d.Block()
	raw, err := s.read(len(s.raw)-1, src, first/elems*size, n/elems*size)
	if err != nil {
		return nil, err
	}
	v := s.buffer(i, n)
	Floats(d, v, raw)
	return v, nil
}

// buffer is buffer i for n floats.
func (s *scratch) buffer(i int, n int64) []float32 {
	if int64(cap(s.values[i])) < n {
		s.values[i] = make([]float32, n)
	}
	return s.values[i][:n]
}

// Reader shows a tensor of elems elements, which are whole blocks of a supported type, as the bytes
// of little-endian float32; their number of bytes must fit an int64. Only the blocks that a read
// touches are read from src, through a buffer of bounded size. It is safe for concurrent use when
// src is, and a src that ends early is an error.
func Reader(d tensor.DType, elems int64, src io.ReaderAt) io.ReaderAt {
	unit, size := d.Block()
	return &reader{elems, unit, func(s *scratch, dst []float32, first int64) error {
		if b := bytesOf(dst); d == tensor.F32 && b != nil {
			return tensor.ReadFull(src, b, 4*first)
		}
		in, err := s.read(0, src, first/unit*size, int64(len(dst))/unit*size)
		if err != nil {
			return err
		}
		Floats(d, dst, in)
		return nil
	}}
}

// ReadAt decodes into p itself as far as its whole blocks go, and the rest through the buffer.
func (r *reader) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("decode: negative offset %d", off)
	}
	size := 4 * r.elems
	if off >= size {
		return 0, io.EOF
	}
	if int64(len(p)) > size-off {
		p, err = p[:size-off], io.EOF
	}
	s := pool.Get().(*scratch)
	defer pool.Put(s)
	for n < len(p) {
		done, err := r.step(s, p[n:], off+int64(n))
		if err != nil {
			return n, err
		}
		n += done
	}
	return n, err
}

// step decodes the first bytes of p, at most a chunk.
func (r *reader) step(s *scratch, p []byte, off int64) (int, error) {
	block := 4 * r.unit
	first, skip := off/block*r.unit, off%block
	if dst := floatsOf(p); skip == 0 && int64(len(dst)) >= r.unit {
		n := min(int64(len(dst))/r.unit*r.unit, chunk)
		return int(4 * n), r.decode(s, dst[:n], first)
	}
	want := (skip + int64(len(p)) + block - 1) / block * r.unit
	dst := s.out[:min(want, chunk)]
	if err := r.decode(s, dst, first); err != nil {
		return 0, err
	}
	return putFloats(p, dst, int(skip)), nil
}
