package gguf

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"weightfs/format/tensor"
)

// maxDims is NumPy's limit; ggml's is 4, gguf-py has none.
const maxDims = 64

// A directory reads the tensor infos, which follow the metadata, into a header.
type directory struct {
	*decoder
	header *tensor.Header
	align  int64
	shapes map[string][]uint64 // comfy.gguf.orig_shape.*
	blocks int                 // tensors of block types
}

// read reads n tensor infos and then places them: offsets count from the end of the last info,
// rounded up to the alignment.
func (d *directory) read(n uint64) error {
	seen := make(map[string]struct{}, min(n, 1<<12))
	for i := uint64(0); i < n && d.more(); i++ {
		off := d.Off()
		name := d.Str(d.length("tensor name length"), maxName, "tensor name")
		if d.Err() != nil {
			break
		}
		if _, dup := seen[name]; dup {
			return fault(off, name, tensor.ErrMalformed, "duplicate tensor name")
		}
		seen[name] = struct{}{}
		if err := d.info(off, name); err != nil {
			return err
		}
	}
	if !d.more() {
		return d.Err()
	}
	if d.bigEndian() && d.blocks > 0 {
		d.warn("%d tensors of block types are served as stored, big-endian", d.blocks)
	}
	base := (d.Off() + d.align - 1) / d.align * d.align
	if err := d.place(base); err != nil {
		return err
	}
	d.overlaps()
	return nil
}

// info reads the rest of a tensor info, which began at offset at. The Extent it appends still
// counts from the start of the data.
func (d *directory) info(at int64, name string) error {
	dims := d.U32("dimension count")
	if dims > maxDims {
		return fault(at, name, tensor.ErrTooLarge, "%d dimensions exceed the limit of %d", dims, maxDims)
	}
	both := make([]uint64, 2*dims)
	ne, shape := both[:dims:dims], both[dims:]
	for i := range ne {
		ne[i] = d.length("dimension")
		shape[len(shape)-1-i] = ne[i]
	}
	id := d.U32("tensor type")
	off := d.U64("tensor offset")
	if err := d.Err(); err != nil {
		return inTensor(err, name)
	}
	dtype, ok := dtypeOf(id)
	if !ok {
		d.warnUnsized(name, id)
		return nil
	}
	size, err := byteSize(dtype, ne, shape)
	if err != nil {
		return fault(at, name, errors.Unwrap(err), "%v", err)
	}
	if off%uint64(d.align) != 0 {
		return fault(at, name, tensor.ErrMalformed, "offset %d is not a multiple of the alignment %d", off, d.align)
	}
	if off > math.MaxInt64 {
		return fault(at, name, tensor.ErrTooLarge, "offset %d exceeds 63 bits", off)
	}
	info := tensor.Info{Name: name, DType: dtype, Shape: shape, Bytes: size}
	info.Extent = tensor.Extent{Off: int64(off), Len: size}
	d.describe(&info, ne, id)
	d.header.Tensors = append(d.header.Tensors, info)
	return nil
}

// byteSize multiplies in ggml's order and in NumPy's, since a zero hides an overflow only behind it.
func byteSize(dtype tensor.DType, ne, shape []uint64) (int64, error) {
	for _, n := range ne {
		if n > 1<<63-1 {
			return 0, fmt.Errorf("%w: dimension %d exceeds 63 bits", tensor.ErrTooLarge, n)
		}
	}
	if _, err := tensor.Elements(ne); err != nil {
		return 0, err
	}
	return dtype.Size(shape, false)
}

// describe sets what depends on the byte order, and Extra.
func (d *directory) describe(info *tensor.Info, ne []uint64, id uint32) {
	info.Extra = tensor.Object{{Key: "ne", Value: ne}, {Key: "ggml_type", Value: typeExtras[id]}}
	if d.bigEndian() {
		info.Extra = append(info.Extra, tensor.KV{Key: "stored_byteorder", Value: "big"})
		switch {
		case info.DType.Kind() == tensor.Block:
			d.blocks++
		case info.DType.Word() > 1:
			info.Layout = &tensor.Layout{Swap: true}
		}
	}
	if orig := d.shapes[info.Name]; orig != nil && sameElements(orig, info.Shape) {
		info.Extra = append(info.Extra, tensor.KV{Key: "orig_shape", Value: orig})
	}
}

func (d *directory) bigEndian() bool { return d.src.order == binary.BigEndian }

func (d *directory) warn(format string, a ...any) {
	d.header.Warn(format, a...)
}

func (d *directory) warnUnsized(name string, id uint32) {
	if known := unsized[id]; known != "" {
		d.warn("tensor %q is left out: ggml type %d (%s) has no known size", name, id, known)
		return
	}
	d.warn("tensor %q is left out: ggml type %d has no known size", name, id)
}

// place turns offsets into the data into offsets in the file. An empty last tensor may lie in
// padding that was never written.
func (d *directory) place(base int64) error {
	avail := d.src.size - base // negative when the padding of the header is missing
	for i := range d.header.Tensors {
		info := &d.header.Tensors[i]
		off, n := info.Extent.Off, info.Extent.Len
		switch {
		case off <= avail && n <= avail-off:
			info.Extent.Off = base + off
		case n == 0 && off < avail+d.align:
			info.Extent.Off = d.src.size
		default:
			return d.truncated(base, d.header.Tensors[i:])
		}
	}
	return nil
}

// truncated tells the first tensor that is cut, the first of those that are left, and both sizes.
func (d *directory) truncated(base int64, left []tensor.Info) error {
	end := base
	for _, info := range left {
		off, n := info.Extent.Off, info.Extent.Len
		if off > math.MaxInt64-base || n > math.MaxInt64-base-off {
			return fault(d.src.size, info.Name, tensor.ErrTooLarge, "%d bytes at offset %d of the data section end beyond 63 bits", n, off)
		}
		end = max(end, base+off+n)
	}
	cut := left[0]
	return fault(min(base+cut.Extent.Off, d.src.size), cut.Name, tensor.ErrTruncated,
		"truncated: %d bytes at offset %d of the data section, which begins at %d (alignment %d), but the file has %d bytes of the %d that its header describes: %d are missing",
		cut.Extent.Len, cut.Extent.Off, base, d.align, d.src.size, end, end-d.src.size)
}

// overlaps records tensors that share bytes. gguf-py reads them, ggml refuses them, and no writer
// is known that means it.
func (d *directory) overlaps() {
	var order []*tensor.Info
	for i := range d.header.Tensors {
		if info := &d.header.Tensors[i]; info.Extent.Len > 0 {
			order = append(order, info)
		}
	}
	byOffset := func(a, b *tensor.Info) int { return cmp.Compare(a.Extent.Off, b.Extent.Off) }
	if !slices.IsSortedFunc(order, byOffset) {
		slices.SortStableFunc(order, byOffset)
	}
	var last *tensor.Info // of those before, the one that ends last
	for _, info := range order {
		if last != nil && info.Extent.Off < last.Extent.Off+last.Extent.Len {
			d.header.Tolerable = append(d.header.Tolerable, fault(info.Extent.Off, info.Name, tensor.ErrMalformed,
				"overlaps tensor %q, which ends at %d", last.Name, last.Extent.Off+last.Extent.Len))
		}
		if last == nil || info.Extent.Off+info.Extent.Len > last.Extent.Off+last.Extent.Len {
			last = info
		}
	}
}

const originalShapePrefix = "comfy.gguf.orig_shape."

// originalShapes gives the shapes, row-major, that tensors had before a converter flattened them
// for ggml's limit of four dimensions.
func originalShapes(meta tensor.Object) map[string][]uint64 {
	shapes := make(map[string][]uint64)
	for _, kv := range meta {
		name, ok := strings.CutPrefix(kv.Key, originalShapePrefix)
		if !ok {
			continue
		}
		dims, _ := kv.Value.([]any)
		shape := make([]uint64, 0, len(dims))
		for _, dim := range dims {
			if n, ok := unsigned(dim); ok {
				shape = append(shape, n)
			}
		}
		if len(shape) == len(dims) && len(dims) > 0 {
			shapes[name] = shape
		}
	}
	return shapes
}

func sameElements(a, b []uint64) bool {
	n, err := tensor.Elements(a)
	m, err2 := tensor.Elements(b)
	return err == nil && err2 == nil && n == m
}

// unsigned gives an integer of the metadata, which writers store signed or not.
func unsigned(value any) (uint64, bool) {
	switch n := value.(type) {
	case uint64:
		return n, true
	case int64:
		return uint64(n), n >= 0
	}
	return 0, false
}
