// Package gguf parses GGUF, the container of ggml: versions 1 to 3, in both byte orders. It takes one
// file at a time, with its place in a split set, and does not look into the blocks of quantised tensors,
// which package decode knows.
package gguf

import (
	"encoding/binary"
	"io"
	"math/bits"

	"weightfs/format/tensor"
)

const (
	format           = "gguf"
	magic            = "GGUF"
	alignmentKey     = "general.alignment"
	defaultAlignment = 32
)

// Parse reads the header of a GGUF file of size bytes. Long values of Meta stay in the file: r is
// read again when they are rendered. A tensor of a type without a known size has no Info, and a
// warning names it. Gaps and any order of the tensors are accepted; an overlap is tolerable.
func Parse(r io.ReaderAt, size int64) (*tensor.Header, error) {
	d, err := open(r, size)
	if err != nil {
		return nil, err
	}
	tensors := d.length("tensor count")
	keys := d.length("key count")
	d.Count(keys, d.lengthSize()+4+1, "metadata keys")
	d.Count(tensors, d.lengthSize()+4+4+8, "tensors")
	if err := d.Err(); err != nil {
		return nil, err
	}
	h := &tensor.Header{Format: format}
	align, err := d.metadata(h, keys)
	if err != nil {
		return nil, err
	}
	dir := &directory{decoder: d, header: h, align: align, shapes: originalShapes(h.Meta)}
	if err := dir.read(tensors); err != nil {
		return nil, err
	}
	return h, nil
}

// open checks magic and version. A big-endian file is told by its version, since the magic is the
// same: no version has its low 16 bits clear in the right byte order.
func open(r io.ReaderAt, size int64) (*decoder, error) {
	src := &source{r: r, size: size, order: binary.LittleEndian}
	d := src.decoder(0)
	if got := d.Bytes(uint64(len(magic)), 4, "magic"); got != nil && string(got) != magic {
		d.Fail(0, tensor.ErrMalformed, "magic is %q, not %q", got, magic)
	}
	v := d.U32("version")
	if v&0xffff == 0 {
		v = bits.ReverseBytes32(v)
		src.order = binary.BigEndian
		d.SetOrder(src.order)
	}
	src.version = v
	if v < 1 || v > 3 {
		d.Fail(int64(len(magic)), tensor.ErrUnsupported, "version %d is not one of 1 to 3", v)
	}
	return d, d.Err()
}

// metadata reads n keys with their values into h.Meta, and gives the alignment of the data.
func (d *decoder) metadata(h *tensor.Header, n uint64) (align int64, err error) {
	align = defaultAlignment
	seen := make(map[string]struct{})
	for i := uint64(0); i < n && d.more(); i++ {
		off := d.Off()
		key := d.Str(d.length("key length"), maxName, "key")
		if _, dup := seen[key]; dup {
			d.Fail(off, tensor.ErrMalformed, "duplicate key %q", key)
		}
		seen[key] = struct{}{}
		t := d.valueType()
		value := d.value(t)
		if err := d.Err(); err != nil {
			return 0, inKey(err, key)
		}
		if key == alignmentKey {
			align = d.alignment(off, t, value)
		}
		h.Meta = append(h.Meta, tensor.KV{Key: key, Value: value})
	}
	d.more()
	return align, d.Err()
}

// alignment checks the value as both references do. (The specification's "multiple of 8" is
// kept by neither.)
func (d *decoder) alignment(off int64, t valueType, value any) int64 {
	if t != typeU32 {
		d.Fail(off, tensor.ErrMalformed, "%s must be of type u32 but is %v", alignmentKey, t)
		return 0
	}
	align := value.(uint64)
	if bits.OnesCount64(align) != 1 {
		d.Fail(off, tensor.ErrMalformed, "%s is %d, not a power of two", alignmentKey, align)
	}
	return int64(align)
}
