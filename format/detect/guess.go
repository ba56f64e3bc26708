package detect

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// guess recognises formats that have no signature at the front.
func (f *file) guess() *known {
	switch {
	case f.endsWith("PK\x05\x06", 22):
		return &known{what: "a zip archive with other bytes in front of it", hint: "PyTorch and NumPy, too, want PK\\3\\4 at the start"}
	case f.endsWith("\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8):
		return &known{what: "a LevelDB table, as the .index of a TensorFlow checkpoint is", hint: resave}
	case f.savedModel():
		return &known{what: "a TensorFlow SavedModel graph", hint: resave}
	case f.flax():
		return &known{what: "a msgpack file, as Flax writes checkpoints", hint: resave}
	}
	return f.zeroFilled()
}

// endsWith tells whether magic stands so many bytes before the end.
func (f *file) endsWith(magic string, back int64) bool {
	b, err := f.read(f.size-back, len(magic))
	return f.size >= back && err == nil && string(b) == magic
}

// zeroFilled words what a download that reserved its space and then broke off looks like. It counts
// the zeros of the first mebibyte.
func (f *file) zeroFilled() *known {
	const few, many = 64, 1 << 20
	if len(bytes.TrimLeft(f.head[:min(few, len(f.head))], "\x00")) > 0 {
		return nil
	}
	n, limit := int64(0), min(f.size, many)
	for n < limit {
		b, err := f.read(n, headSize)
		zeros := len(b) - len(bytes.TrimLeft(b, "\x00"))
		n += int64(zeros)
		if err != nil || zeros < len(b) {
			break
		}
	}
	what := fmt.Sprintf("a file of %d bytes that are zeros", n)
	if n < f.size {
		what = fmt.Sprintf("a file that begins with %d zeros or more, of %d bytes", n, f.size)
	}
	return &known{what: what + ", as a broken download leaves it (read as safetensors, its header is empty)", hint: fetchIt, broken: true}
}

// savedModel recognises protobuf's schema version 1 and a first MetaGraphDef that begins with its
// MetaInfoDef.
func (f *file) savedModel() bool {
	if !f.has("\x08\x01\x12") {
		return false
	}
	n, w := binary.Uvarint(f.head[3:])
	return w > 0 && n <= uint64(f.size) && f.hasAt(3+w, "\x0a")
}

// flax recognises a map whose first key is a word and whose value is a map or an array (extension).
func (f *file) flax() bool {
	b := f.head
	switch {
	case len(b) > 0 && b[0] > 0x80 && b[0] <= 0x8f:
		b = b[1:]
	case len(b) > 3 && b[0] == 0xde:
		b = b[3:]
	case len(b) > 5 && b[0] == 0xdf:
		b = b[5:]
	default:
		return false
	}
	n := 0
	switch {
	case len(b) > 1 && b[0] > 0xa0 && b[0] <= 0xbf:
		n, b = int(b[0]&0x1f), b[1:]
	case len(b) > 2 && b[0] == 0xd9:
		n, b = int(b[1]), b[2:]
	}
	if n == 0 || len(b) <= n || !isText(b[:n]) {
		return false
	}
	value := b[n]
	return value&0xf0 == 0x80 || value == 0xde || value == 0xdf || value >= 0xc7 && value <= 0xc9 || value >= 0xd4 && value <= 0xd8
}
