package gguf

import (
	"encoding/binary"
	"io"

	"weightfs/format/tensor"
)

const (
	// maxHeader bounds what is in front of the data: a count of 2^59 empty strings fits a sparse
	// file. The largest header known, of a tokenizer of 262,144 tokens, has 10 MB.
	maxHeader = 256 << 20
	// maxName bounds keys (65535 in the specification) and tensor names (64 in ggml, 128 in
	// stable-diffusion.cpp's builds of it).
	maxName = 64 << 10
)

// A source is a file with what its first eight bytes say. It never changes.
type source struct {
	r       io.ReaderAt
	size    int64
	order   binary.ByteOrder
	version uint32
}

// A decoder reads a source front to back.
type decoder struct {
	*tensor.Cursor
	src *source
}

func (s *source) decoder(off int64) *decoder {
	d := &decoder{Cursor: tensor.NewCursor(s.r, s.size, format), src: s}
	d.SetOrder(s.order)
	d.Skip(uint64(off), "header")
	return d
}

// more tells whether to read another record: no fault so far, and the header not too long.
func (d *decoder) more() bool {
	if d.Off() > maxHeader {
		d.Fail(d.Off(), tensor.ErrTooLarge, "header exceeds the limit of %d bytes", maxHeader)
	}
	return d.Err() == nil
}

// length reads a count, a length or a dimension: 32 bits in version 1, 64 since.
func (d *decoder) length(what string) uint64 {
	if d.src.version == 1 {
		return uint64(d.U32(what))
	}
	return d.U64(what)
}

// lengthSize is the size of what length reads.
func (d *decoder) lengthSize() int64 {
	if d.src.version == 1 {
		return 4
	}
	return 8
}
