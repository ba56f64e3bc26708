package decode

import (
	"encoding/binary"
	"math"
	"sync"
)

var le = binary.LittleEndian

func f32(dst []float32, src []byte) {
	if b := bytesOf(dst); b != nil {
		copy(b, src)
		return
	}
	for i := range dst {
		dst[i] = math.Float32frombits(le.Uint32(src[4*i:]))
	}
}

// bf16 widens: a bfloat16 is the upper half of a float32.
func bf16(dst []float32, src []byte) {
	n := len(src) &^ 15
	widen(dst[:n/2], src[:n])
	for i := n; i < len(src); i += 2 {
		dst[i/2] = math.Float32frombits(uint32(le.Uint16(src[i:])) << 16)
	}
}

// f16 looks each half up: a table of 256 KiB is three times as fast as half, whose branches on real
// weights are not predicted.
func f16(dst []float32, src []byte) {
	table := halves()
	n := len(dst) &^ 3
	for i := 0; i < n; i += 4 {
		y, h := dst[i:i+4:i+4], le.Uint64(src[2*i:2*i+8])
		y[0] = table[uint16(h)]
		y[1] = table[uint16(h>>16)]
		y[2] = table[uint16(h>>32)]
		y[3] = table[uint16(h>>48)]
	}
	for i := n; i < len(dst); i++ {
		dst[i] = table[le.Uint16(src[2*i:])]
	}
}

var halves = sync.OnceValue(func() *[1 << 16]float32 {
	table := new([1 << 16]float32)
	for h := range table {
		table[h] = half(uint16(h))
	}
	return table
})

// half widens an IEEE half. NaN keeps its payload and stays signalling, as in NumPy.
func half(h uint16) float32 {
	sign, mag := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<13
	switch e := h & 0x7c00; e {
	case 0:
		return math.Float32frombits(sign | math.Float32bits(float32(mag>>13)*0x1p-24))
	case 0x7c00:
		return math.Float32frombits(sign | mag | 0x7f800000)
	}
	return math.Float32frombits(sign | (mag + 112<<23))
}

// scale reads the half that many ggml blocks keep their scale in.
func scale(b []byte) float32 { return half(le.Uint16(b)) }

func bytewise(table *[256]float32) kernel {
	return func(dst []float32, src []byte) {
		for i, b := range src[:len(dst)] {
			dst[i] = table[b]
		}
	}
}
