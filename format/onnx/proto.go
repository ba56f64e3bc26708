package onnx

import (
	"errors"

	"weightfs/format/tensor"
)

// maxRank bounds the dimensions of a tensor; NumPy's limit is 64.
const maxRank = 255

// A proto is what a TensorProto says.
type proto struct {
	name     string
	dims     []uint64
	dataType uint64
	raw      *tensor.Extent
	data     [fieldCount]pieces
	segment  bool
	external bool
	entries  []tensor.KV // external_data
}

// pieces are the stretches over which a repeated field is spread; one of all that are not empty.
type pieces struct {
	count  int
	at     tensor.Extent // of the last one
	values int64         // in the last one, each in a field of its own; 0 where they are packed
	key    int64         // where the first of these fields begins
}

func (p *pieces) add(at tensor.Extent) {
	if at.Len > 0 {
		*p = pieces{count: p.count + 1, at: at}
	}
}

// addValue adds one that is not packed, whose field begins at key. Several are a stretch of fields, one of them
// is only its value, which may lie in the file as it is.
func (p *pieces) addValue(key int64, at tensor.Extent) {
	end := p.at.Off + p.at.Len
	if p.values == 0 || end != key {
		*p = pieces{count: p.count + 1, at: at, key: key, values: 1}
		return
	}
	p.at = tensor.Extent{Off: p.key, Len: at.Off + at.Len - p.key}
	p.values++
}

// protoFields are the fields of TensorProto that hold elements, with the wire type of one that is
// not packed.
var protoFields = map[uint64]struct {
	field dataField
	wire  byte
}{
	4:  {floatData, wireFixed32},
	5:  {int32Data, wireVarint},
	7:  {int64Data, wireVarint},
	10: {doubleData, wireFixed64},
	11: {uint64Data, wireVarint},
}

// fixedSizes are the bytes of an element by its wire type, 0 for varints.
var fixedSizes = [...]int64{wireVarint: 0, wireFixed64: 8, wireBytes: 0, wireFixed32: 4}

// proto reads a TensorProto. A fault in it names the tensor, whose name stands behind its dimensions.
func (p *parser) proto(m message) *proto {
	start := m.c.Off()
	t := protoOf(m)
	if fault, ok := errors.AsType[*tensor.FormatError](p.c.Err()); ok && fault.Tensor == "" {
		c := tensor.NewCursor(p.r, m.end, "onnx")
		c.Skip(uint64(start), "model")
		fault.Tensor = nameOf(message{c: c, end: m.end, what: m.what})
	}
	return t
}

// nameOf looks for the name alone.
func nameOf(m message) string {
	for m.more() {
		field, wire := m.key()
		if field == 8 && wire == wireBytes {
			return m.text(maxName, "name")
		}
		m.skip(wire)
	}
	return ""
}

// protoOf walks a TensorProto.
func protoOf(m message) *proto {
	t := &proto{}
	for m.more() {
		key := m.c.Off()
		switch field, wire := m.key(); {
		case field == 1:
			t.addDims(m, wire)
		case field == 2 && m.is(wire, wireVarint, "data_type"):
			t.dataType = m.varint("data_type")
		case field == 3:
			t.segment = true
			m.skip(wire)
		case field == 8 && m.is(wire, wireBytes, "name"):
			t.name = m.text(maxName, "name")
		case field == 9 && m.is(wire, wireBytes, "raw_data"):
			raw := m.extent("raw_data")
			t.raw = &raw
		case field == 13 && m.is(wire, wireBytes, "external_data"):
			t.entries = append(t.entries, pair(m.sub("external_data"), maxName))
		case field == 14 && m.is(wire, wireVarint, "data_location"):
			t.external = m.varint("data_location") == 1
		case protoFields[field].field != noField:
			f := protoFields[field]
			t.data[f.field].read(m, key, wire, f.wire, fieldNames[f.field])
		default:
			m.skip(wire)
		}
	}
	return t
}

func (t *proto) addDims(m message, wire byte) {
	list := message{c: m.c, end: m.end, what: "dims"}
	if wire == wireBytes {
		list = m.sub("dims")
	} else if !m.is(wire, wireVarint, "dims") {
		return
	}
	for list.more() {
		at := m.c.Off()
		dim := list.varint("dimension")
		switch {
		case int64(dim) < 0:
			m.c.Fail(at, tensor.ErrMalformed, "dimension %d is negative", int64(dim))
		case len(t.dims) == maxRank:
			m.c.Fail(at, tensor.ErrTooLarge, "more than %d dimensions", maxRank)
		}
		t.dims = append(t.dims, dim)
		if wire == wireVarint {
			break
		}
	}
}

// read adds what a field holds that is packed or one value of a wire type.
func (p *pieces) read(m message, key int64, wire, want byte, what string) {
	at := tensor.Extent{Off: m.c.Off()}
	if wire == wireBytes {
		at = m.extent(what)
		if size := fixedSizes[want]; size > 0 && at.Len%size != 0 {
			m.c.Fail(at.Off, tensor.ErrMalformed, "%s of %d bytes is no whole number of elements", what, at.Len)
		}
		p.add(at)
	} else if m.is(wire, want, what) {
		m.skip(wire)
		at.Len = m.c.Off() - at.Off
		p.addValue(key, at)
	}
}
