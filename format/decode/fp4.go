package decode

import "math"

// e2m1 holds the values of a four-bit float.
var e2m1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6}

// Within ggml's blocks the values are twice those, as integers (so there is no negative zero), and
// the scales half of theirs.
var e2m1Twice = [16]float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

var (
	e8m0Half = halved(e8m0, 255, 0x1p127)
	e4m3Half = unsignedE4M3()
)

// unsignedE4M3 tabulates the scales of NVFP4: the sign is ignored, there is no infinity, and of the
// two patterns that are NaN in F8_E4M3 ggml reads 0x7f as zero and 0xff as a number.
func unsignedE4M3() (table [256]float32) {
	for i := range table {
		table[i] = minifloat(i&0x7f, 4, 3, 7) / 2
	}
	table[0x7f] = 0
	return table
}

// halved is a table divided by two, but for one entry.
func halved(table [256]float32, except int, value float32) [256]float32 {
	for i := range table {
		table[i] /= 2
	}
	table[except] = value
	return table
}

// mxfp4: an exponent, 16 bytes with the first 16 elements in their low nibbles.
func mxfp4(y []float32, b []byte) {
	d := e8m0Half[b[0]]
	lo, hi := y[:16], y[16:32]
	for i, q := range b[1:17] {
		lo[i] = d * e2m1Twice[q&15]
		hi[i] = d * e2m1Twice[q>>4]
	}
}

// nvfp4: four scales, then for each of them eight bytes with its first eight elements in their low
// nibbles.
func nvfp4(y []float32, b []byte) {
	for g, s := range b[:4] {
		d := e4m3Half[s]
		lo, hi := y[16*g:][:8], y[16*g+8:][:8]
		for i, q := range b[4+8*g:][:8] {
			lo[i] = d * e2m1Twice[q&15]
			hi[i] = d * e2m1Twice[q>>4]
		}
	}
}
