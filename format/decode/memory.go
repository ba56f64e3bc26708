package decode

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// littleEndian tells that a float32 in memory is what a view shows.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// bytesOf is the memory of v as a view shows it, so that nothing is copied; nil on a big-endian
// machine.
func bytesOf(v []float32) []byte {
	if !littleEndian {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// floatsOf is the same memory the other way, without a last partial element; nil where no float
// can lie there.
func floatsOf(b []byte) []float32 {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if !littleEndian || len(b) < 4 || uintptr(p)%4 != 0 {
		return nil
	}
	return unsafe.Slice((*float32)(p), len(b)/4)
}

// putFloats copies the bytes of v from byte off on to dst, and returns their number.
func putFloats(dst []byte, v []float32, off int) int {
	if b := bytesOf(v); b != nil {
		return copy(dst, b[off:])
	}
	n := min(len(dst), 4*len(v)-off)
	for i := range n {
		dst[i] = byte(math.Float32bits(v[(off+i)/4]) >> ((off + i) % 4 * 8))
	}
	return n
}
