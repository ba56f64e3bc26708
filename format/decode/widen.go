//go:build !amd64

package decode

import "math"

// widen is bf16 for a multiple of eight elements. With bounds that the compiler can see it is four
// times as fast as the plain loop.
func widen(dst []float32, src []byte) {
	for i := 0; i < len(src); i += 16 {
		b, y := src[i:i+16:i+16], dst[i/2:i/2+8:i/2+8]
		lo, hi := le.Uint64(b), le.Uint64(b[8:])
		y[0] = math.Float32frombits(uint32(lo) << 16)
		y[1] = math.Float32frombits(uint32(lo) & 0xffff0000)
		y[2] = math.Float32frombits(uint32(lo>>32) << 16)
		y[3] = math.Float32frombits(uint32(lo>>32) & 0xffff0000)
		y[4] = math.Float32frombits(uint32(hi) << 16)
		y[5] = math.Float32frombits(uint32(hi) & 0xffff0000)
		y[6] = math.Float32frombits(uint32(hi>>32) << 16)
		y[7] = math.Float32frombits(uint32(hi>>32) & 0xffff0000)
	}
}
