package format

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"

	"weightfs/format/tensor"
)

// npy/: the elements behind a NumPy header. Packed types are shown as bytes.

func npySize(c *Checkpoint, t uint32) int64 {
	info := c.index.Info(t)
	return int64(len(npyHeaderOf(&info))) + info.Bytes
}

func openNPY(c *Checkpoint, t uint32) (Content, error) {
	info := c.index.Info(t)
	seg, err := c.elements(t)
	if err != nil {
		return nil, err
	}
	return newSegments(Literal(npyHeaderOf(&info)), seg), nil
}

func npyHeaderOf(info *tensor.Info) []byte {
	return npyHeader(info.DType.Descr(), info.DType.ByteShape(info.Shape, info.Bytes))
}

// npyCan tells whether NumPy could take a shape: its dimensions are int64.
func npyCan(shape []uint64) bool {
	for _, dim := range shape {
		if dim > math.MaxInt64 {
			return false
		}
	}
	return true
}

// npyHeader is what numpy.save writes in front of row-major data: version 1.0 where its 16-bit
// length suffices, padded with spaces so that the data begins at a multiple of 64.
func npyHeader(descr string, shape []uint64) []byte {
	var b bytes.Buffer
	b.WriteString("\x93NUMPY\x01\x00\x00\x00{'descr': '")
	b.WriteString(descr)
	b.WriteString("', 'fortran_order': False, 'shape': (")
	for i, dim := range shape {
		if i > 0 {
			b.WriteString(", ")
		}
		b.Write(strconv.AppendUint(b.AvailableBuffer(), dim, 10))
	}
	if len(shape) == 1 {
		b.WriteByte(',')
	}
	b.WriteString("), }")
	const prefix1, prefix2 = 10, 12 // magic, version and the length itself
	h := b.Bytes()
	if pad64(len(h)+1)-prefix1 <= math.MaxUint16 {
		h = append(h, bytes.Repeat([]byte{' '}, pad64(len(h)+1)-len(h)-1)...)
		h = append(h, '\n')
		binary.LittleEndian.PutUint16(h[8:], uint16(len(h)-prefix1))
		return h
	}
	h = append(h[:8], append([]byte{0, 0, 0, 0}, h[prefix1:]...)...)
	h[6] = 2
	h = append(h, bytes.Repeat([]byte{' '}, pad64(len(h)+1)-len(h)-1)...)
	h = append(h, '\n')
	binary.LittleEndian.PutUint32(h[8:], uint32(len(h)-prefix2))
	return h
}

func pad64(n int) int { return (n + 63) &^ 63 }

// count is the number of elements of a shape whose product a parser has checked.
func count(shape []uint64) int64 {
	n, _ := tensor.Elements(shape)
	return int64(n)
}
