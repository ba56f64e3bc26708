// Package elements reads a tensor's elements as raw/ shows them, row-major and little-endian, from
// however its file lays them out: strided, big-endian, lazily negated, deflated or as varints. Any
// range can be read at any time, in memory that is bounded whatever the tensor's size.
package elements

import (
	"errors"
	"fmt"
	"io"
	"reflect"

	"weightfs/format/tensor"
)

// Reader gives the t.Bytes elements of t, whose file is src. It may be read by many at once, and a
// read is short only at the end; a source that is shorter than the tensor's range is
// io.ErrUnexpectedEOF. A packed range is unpacked into store at the first read; store may be nil
// for tensors that are not packed. src is part of a key there, so it must be comparable (a pointer).
func Reader(src io.ReaderAt, t *tensor.Info, store *Unpacker) (io.ReaderAt, error) {
	layout := t.Layout
	if layout == nil {
		layout = &tensor.Layout{}
	}
	storage, size, err := open(src, t, layout, store)
	if err != nil {
		return nil, err
	}
	change, err := changeOf(t.DType, layout)
	if err != nil {
		return nil, err
	}
	if layout.Strides == nil {
		if t.Bytes < 0 || t.Bytes > size {
			return nil, fmt.Errorf("%w: %d bytes of elements in a range of %d", tensor.ErrMalformed, t.Bytes, size)
		}
		plain := &section{src: storage, size: t.Bytes}
		if change == nil {
			return plain, nil
		}
		_, unit := t.DType.Block()
		if t.Bytes%unit != 0 {
			return nil, fmt.Errorf("%w: %d bytes are not whole elements of %d", tensor.ErrMalformed, t.Bytes, unit)
		}
		return &reader{fill: plain.full, change: change, unit: unit, size: t.Bytes}, nil
	}
	g, err := newGather(storage, size, t)
	if err != nil {
		return nil, err
	}
	return &reader{fill: g.full, change: change, unit: g.elem, size: t.Bytes}, nil
}

// open finds the storage that the elements are taken from, and its size.
func open(src io.ReaderAt, t *tensor.Info, layout *tensor.Layout, store *Unpacker) (io.ReaderAt, int64, error) {
	if t.Extent.Off < 0 || t.Extent.Len < 0 {
		return nil, 0, fmt.Errorf("%w: range of %d bytes at %d", tensor.ErrMalformed, t.Extent.Len, t.Extent.Off)
	}
	if layout.Pack == tensor.Stored {
		return &section{src: src, off: t.Extent.Off, size: t.Extent.Len}, t.Extent.Len, nil
	}
	if store == nil || !reflect.TypeOf(src).Comparable() {
		return nil, 0, errors.New("a packed tensor needs a place to be unpacked to, and a comparable source")
	}
	size := layout.Unpacked - layout.Skip
	if layout.Skip < 0 || size < 0 {
		return nil, 0, fmt.Errorf("%w: %d unpacked bytes of which %d are skipped", tensor.ErrMalformed, layout.Unpacked, layout.Skip)
	}
	_, width := t.DType.Block()
	p := &packed{store: store, key: packedRange{
		src: src, extent: t.Extent, pack: layout.Pack, width: width, unpacked: layout.Unpacked, crc: layout.CRC32,
	}}
	return &section{src: p, off: layout.Skip, size: size}, size, nil
}

// A section is a range of a source. Unlike io.SectionReader it tells a source that ends too early
// from its own end.
type section struct {
	src       io.ReaderAt
	off, size int64
}

// ReadAt is short only at the end of the section.
func (s *section) ReadAt(p []byte, off int64) (int, error) {
	n, err := clamp(p, off, s.size)
	if n == 0 {
		return 0, err
	}
	if err := s.full(p[:n], off); err != nil {
		return 0, err
	}
	return n, err
}

// full reads all of p, which lies within the section.
func (s *section) full(p []byte, off int64) error { return tensor.ReadFull(s.src, p, s.off+off) }

// clamp is how many bytes of p a read at off of a file of size bytes fills, and the error that the
// read then ends with.
func clamp(p []byte, off, size int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read at negative offset %d", off)
	}
	if off >= size {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	if size-off < int64(len(p)) {
		return int(size - off), io.EOF
	}
	return len(p), nil
}

// A reader makes elements in whole units and answers for any range of bytes.
type reader struct {
	fill   func(p []byte, off int64) error // both multiples of unit
	change func(p []byte)                  // of whole units, in place; nil for none
	unit   int64
	size   int64
}

// ReadAt is short only at the end of the tensor.
func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	n, end := clamp(p, off, r.size)
	for done := 0; done < n; {
		m, err := r.some(p[done:n], off+int64(done))
		if err != nil {
			return done, err
		}
		done += m
	}
	return n, end
}

// some fills the beginning of p: the rest of a unit, or all the whole units there are.
func (r *reader) some(p []byte, off int64) (int, error) {
	within := off % r.unit
	if whole := int64(len(p)) / r.unit * r.unit; within == 0 && whole > 0 {
		return int(whole), r.units(p[:whole], off)
	}
	var one [16]byte
	if err := r.units(one[:r.unit], off-within); err != nil {
		return 0, err
	}
	return copy(p, one[within:r.unit]), nil
}

func (r *reader) units(p []byte, off int64) error {
	if err := r.fill(p, off); err != nil {
		return err
	}
	if r.change != nil {
		r.change(p)
	}
	return nil
}
