package onnx

import (
	"weightfs/format/tensor"
)

// The wire types of protobuf that ONNX uses. Groups (3 and 4) are in none of its messages.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// A message is a stretch of the file that holds protobuf fields. All messages of a file share a
// cursor, which keeps the first fault.
type message struct {
	c    *tensor.Cursor
	end  int64
	what string
}

// more tells whether another field follows.
func (m message) more() bool { return m.c.Err() == nil && m.c.Off() < m.end }

// key reads the number and the wire type of the next field.
func (m message) key() (field uint64, wire byte) {
	at := m.c.Off()
	key := m.varint("key")
	field, wire = key>>3, byte(key&7)
	if m.c.Err() == nil && (field == 0 || field >= 1<<29) {
		m.c.Fail(at, tensor.ErrMalformed, "field number %d in %s", field, m.what)
	}
	return field, wire
}

// varint reads a number of at most ten bytes.
func (m message) varint(what string) uint64 {
	at := m.c.Off()
	value := uint64(0)
	for shift := 0; shift < 70; shift += 7 {
		b := m.c.U8(what)
		if shift == 63 && b > 1 {
			break
		}
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if m.c.Off() > m.end {
				m.c.Fail(at, tensor.ErrMalformed, "%s ends behind %s", what, m.what)
			}
			return value
		}
	}
	m.c.Fail(at, tensor.ErrMalformed, "%s of %s is no varint of 64 bits", what, m.what)
	return 0
}

// extent is where the bytes of a field lie, which it passes over.
func (m message) extent(what string) tensor.Extent {
	n := m.length(what)
	at := tensor.Extent{Off: m.c.Off(), Len: n}
	m.c.Skip(uint64(n), what)
	return at
}

// length reads the length of a field, which is within the message.
func (m message) length(what string) int64 {
	at := m.c.Off()
	n := m.varint(what)
	if m.c.Err() != nil {
		return 0
	}
	if n > uint64(m.c.Remaining()) {
		m.c.Fail(at, tensor.ErrTruncated, "truncated: %s of %d bytes, but only %d remain", what, n, m.c.Remaining())
		return 0
	}
	if n > uint64(m.end-m.c.Off()) {
		m.c.Fail(at, tensor.ErrMalformed, "%s of %d bytes, but only %d of %s remain", what, n, m.end-m.c.Off(), m.what)
		return 0
	}
	return int64(n)
}

// sub begins a message within the message.
func (m message) sub(what string) message {
	n := m.length(what)
	return message{c: m.c, end: m.c.Off() + n, what: what}
}

// text reads a string of at most limit bytes.
func (m message) text(limit int64, what string) string {
	return string(m.c.Bytes(uint64(m.length(what)), limit, what))
}

// fixed is where a field of n bytes lies, which it passes over.
func (m message) fixed(n int64, what string) tensor.Extent {
	at := tensor.Extent{Off: m.c.Off(), Len: n}
	if m.c.Skip(uint64(n), what); m.c.Off() > m.end {
		m.c.Fail(at.Off, tensor.ErrMalformed, "%s ends behind %s", what, m.what)
	}
	return at
}

// skip passes over a field of no interest.
func (m message) skip(wire byte) {
	switch wire {
	case wireVarint:
		m.varint("number")
	case wireFixed64:
		m.fixed(8, "number")
	case wireBytes:
		m.extent("field")
	case wireFixed32:
		m.fixed(4, "number")
	default:
		m.c.Fail(m.c.Off(), tensor.ErrMalformed, "wire type %d in %s", wire, m.what)
	}
}

// is tells whether a field has the wire type that ONNX gives it; another one is a fault.
func (m message) is(wire, want byte, what string) bool {
	if wire != want {
		m.c.Fail(m.c.Off(), tensor.ErrMalformed, "%s of %s has wire type %d, not %d", what, m.what, wire, want)
	}
	return wire == want
}
