package gguf

import (
	"bytes"
	"encoding/binary"

	"weightfs/format/tensor"
)

// A builder writes GGUF, right or wrong.
type builder struct {
	bytes.Buffer
	order   binary.AppendByteOrder
	version uint32
}

func build(version uint32, order binary.AppendByteOrder, tensors, keys uint64) *builder {
	b := &builder{order: order, version: version}
	b.WriteString(magic)
	return b.u32(version).length(tensors).length(keys)
}

// v3 is little-endian.
func v3(tensors, keys uint64) *builder { return build(3, binary.LittleEndian, tensors, keys) }

func (b *builder) u8(v uint8) *builder   { b.WriteByte(v); return b }
func (b *builder) u16(v uint16) *builder { b.Write(b.order.AppendUint16(nil, v)); return b }
func (b *builder) u32(v uint32) *builder { b.Write(b.order.AppendUint32(nil, v)); return b }
func (b *builder) u64(v uint64) *builder { b.Write(b.order.AppendUint64(nil, v)); return b }

func (b *builder) length(v uint64) *builder {
	if b.version == 1 {
		return b.u32(uint32(v))
	}
	return b.u64(v)
}

func (b *builder) str(s string) *builder {
	b.length(uint64(len(s))).WriteString(s)
	return b
}

func (b *builder) key(name string, t valueType) *builder { return b.str(name).u32(uint32(t)) }

func (b *builder) array(t valueType, n uint64) *builder { return b.u32(uint32(t)).length(n) }

func (b *builder) tensor(name string, id uint32, off uint64, ne ...uint64) *builder {
	b.str(name).u32(uint32(len(ne)))
	for _, n := range ne {
		b.length(n)
	}
	return b.u32(id).u64(off)
}

// data pads to the alignment and adds n bytes.
func (b *builder) data(align, n int) *builder {
	if rest := b.Len() % align; rest != 0 {
		b.Write(make([]byte, align-rest))
	}
	for i := range n {
		b.WriteByte(byte(i))
	}
	return b
}

func (b *builder) parse() (*tensor.Header, error) {
	return Parse(bytes.NewReader(b.Bytes()), int64(b.Len()))
}
