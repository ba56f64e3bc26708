package onnx

import (
	"fmt"

	"weightfs/format/tensor"
)

// initializer adds a tensor, or warns why it is not shown.
func (p *parser) initializer(m message, depth int) {
	off := p.c.Off()
	t := p.proto(m)
	if p.c.Err() != nil {
		return
	}
	if depth == 1 && p.seen[t.name] {
		p.fail(t.name, off, tensor.ErrMalformed, "two initializers have this name")
		return
	}
	p.seen[t.name] = p.seen[t.name] || depth == 1
	info, reason := p.info(t, off)
	switch {
	case reason != "":
		p.warn("tensor %q is not shown: %s", t.name, reason)
	case depth > 1:
		p.inner = append(p.inner, info)
	default:
		p.header.Tensors = append(p.header.Tensors, info)
	}
}

// info describes a tensor, or gives the reason why it cannot be shown. off is where it begins.
func (p *parser) info(t *proto, off int64) (info tensor.Info, reason string) {
	if t.dataType >= uint64(len(dataTypes)) {
		return info, fmt.Sprintf("its element type has the unknown number %d", t.dataType)
	}
	kind := dataTypes[t.dataType]
	switch {
	case !kind.dtype.Valid():
		return info, "its element type is " + kind.name
	case t.segment:
		return info, "it is a segment of a larger one"
	}
	info = tensor.Info{Name: t.name, DType: kind.dtype, Shape: t.dims, Extra: typeExtras[t.dataType]}
	var err error
	if info.Bytes, err = kind.dtype.Size(t.dims, true); err != nil {
		p.fail(t.name, off, tensor.ErrTooLarge, "shape %v: %v", t.dims, err)
		return info, ""
	}
	switch {
	case t.external:
		p.external(t, &info, off)
	case t.raw != nil:
		p.stored(&info, *t.raw, "raw_data")
	default:
		return info, p.typed(t, &info, kind.field, off)
	}
	return info, ""
}

// stored places a tensor whose elements lie in the file as they are.
func (p *parser) stored(info *tensor.Info, at tensor.Extent, field string) {
	if at.Len != info.Bytes {
		p.fail(info.Name, at.Off, tensor.ErrMalformed, "%s holds %d bytes, but shape %v of %s takes %d", field, at.Len, info.Shape, info.DType, info.Bytes)
	}
	info.Extent = at
}

// typed places a tensor whose elements are in the repeated field of their type.
func (p *parser) typed(t *proto, info *tensor.Info, field dataField, off int64) (reason string) {
	data := t.data[field]
	switch {
	case field == noField && t.data[int32Data].count > 0:
		return "its elements of 6 bits stand one by one in int32_data"
	case data.count == 0 && info.Bytes == 0:
		info.Extent = tensor.Extent{Off: off}
	case data.count == 0:
		return "no data is stored with it"
	case data.count > 1:
		return fmt.Sprintf("its elements are in %d pieces", data.count)
	case data.values > 1:
		p.fields(info, data, field)
	case field == floatData || field == doubleData:
		p.stored(info, data.at, fieldNames[field])
	default:
		p.varints(info, data.at, fieldNames[field])
	}
	return ""
}

// fields places a tensor each of whose values is in a field of its own.
func (p *parser) fields(info *tensor.Info, data pieces, field dataField) {
	_, width := info.DType.Block()
	switch field {
	case floatData:
		width = 4 // a complex number takes two
	case doubleData:
		width = 8
	}
	if data.values != info.Bytes/width {
		p.fail(info.Name, data.at.Off, tensor.ErrMalformed, "%s holds %d values, but shape %v of %s takes %d", fieldNames[field], data.values, info.Shape, info.DType, info.Bytes/width)
	}
	info.Extent = data.at
	info.Layout = &tensor.Layout{Pack: tensor.Fields, Unpacked: info.Bytes}
}

// varints places a tensor whose elements are varints, of which there must be exactly enough.
func (p *parser) varints(info *tensor.Info, at tensor.Extent, field string) {
	_, width := info.DType.Block() // several elements smaller than a byte share a value
	n, ok := p.countVarints(at)
	if !ok {
		p.fail(info.Name, at.Off, tensor.ErrMalformed, "%s is no sequence of varints", field)
		return
	}
	if n != info.Bytes/width {
		p.fail(info.Name, at.Off, tensor.ErrMalformed, "%s holds %d values, but shape %v of %s takes %d", field, n, info.Shape, info.DType, info.Bytes/width)
	}
	info.Extent = at
	info.Layout = &tensor.Layout{Pack: tensor.Varint, Unpacked: info.Bytes}
}

// countVarints reads a range and counts its varints, none longer than 64 bits.
func (p *parser) countVarints(at tensor.Extent) (count int64, ok bool) {
	if p.buf == nil {
		p.buf = make([]byte, 64<<10)
	}
	length := 0 // of the varint that has begun
	for at.Len > 0 {
		b := p.buf[:min(at.Len, int64(len(p.buf)))]
		if n, err := p.r.ReadAt(b, at.Off); n < len(b) {
			p.c.Fail(at.Off+int64(n), tensor.ErrTruncated, "reading %d bytes: %v", len(b), err)
			return 0, false
		}
		for _, x := range b {
			if length == 9 && x > 1 {
				return 0, false
			}
			length++
			if x < 0x80 {
				count, length = count+1, 0
			}
		}
		at.Off, at.Len = at.Off+int64(len(b)), at.Len-int64(len(b))
	}
	return count, length == 0
}
