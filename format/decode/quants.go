package decode

// Small integers as float32, less an offset: a load is cheaper than a conversion, and as exact. All
// have 256 entries, so that a byte needs no bounds check.
var (
	signed   = integers(func(b byte) int { return int(int8(b)) })
	unsigned = integers(func(b byte) int { return int(b) })
	less1    = integers(func(b byte) int { return int(b) - 1 })
	less4    = integers(func(b byte) int { return int(b) - 4 })
	less8    = integers(func(b byte) int { return int(b) - 8 })
	less16   = integers(func(b byte) int { return int(b) - 16 })
	less32   = integers(func(b byte) int { return int(b) - 32 })
)

func integers(value func(b byte) int) (table [256]float32) {
	for i := range table {
		table[i] = float32(value(byte(i)))
	}
	return table
}

// q4_0: d, then 16 bytes whose low nibbles are the first 16 elements. d * (q - 8).
func q4_0(y []float32, b []byte) {
	d := scale(b)
	lo, hi := y[:16], y[16:32]
	for i, q := range b[2:18] {
		lo[i] = d * less8[q&15]
		hi[i] = d * less8[q>>4]
	}
}

// q4_1: d, m, 16 bytes. d*q + m.
func q4_1(y []float32, b []byte) {
	d, m := scale(b), scale(b[2:])
	lo, hi := y[:16], y[16:32]
	for i, q := range b[4:20] {
		lo[i] = float32(d*unsigned[q&15]) + m
		hi[i] = float32(d*unsigned[q>>4]) + m
	}
}

// q5_0: d, a fifth bit for each element, 16 bytes. d * (q - 16).
func q5_0(y []float32, b []byte) {
	d, high := scale(b), le.Uint32(b[2:])
	lo, hi := y[:16], y[16:32]
	for i, q := range b[6:22] {
		lo[i] = d * less16[q&15|byte(high<<4)&16]
		hi[i] = d * less16[q>>4|byte(high>>12)&16]
		high >>= 1
	}
}

// q5_1: d, m, fifth bits, 16 bytes. d*q + m.
func q5_1(y []float32, b []byte) {
	d, m, high := scale(b), scale(b[2:]), le.Uint32(b[4:])
	lo, hi := y[:16], y[16:32]
	for i, q := range b[8:24] {
		lo[i] = float32(d*unsigned[q&15|byte(high<<4)&16]) + m
		hi[i] = float32(d*unsigned[q>>4|byte(high>>12)&16]) + m
		high >>= 1
	}
}

// q8_0: d, 32 signed bytes.
func q8_0(y []float32, b []byte) {
	d := scale(b)
	y = y[:32]
	for i, q := range b[2:34] {
		y[i] = d * signed[q]
	}
}

// q1_0: d, a sign bit for each element: set for d, clear for -d.
func q1_0(y []float32, b []byte) {
	d := scale(b)
	value := [2]float32{-d, d}
	for i, q := range b[2:18] {
		out := y[8*i:][:8]
		for j := range out {
			out[j] = value[q&1]
			q >>= 1
		}
	}
}

// q2_0: d, 16 bytes of four successive elements. d * (q - 1).
func q2_0(y []float32, b []byte) {
	d := scale(b)
	for i, q := range b[2:18] {
		out := y[4*i:][:4]
		for j := range out {
			out[j] = d * less1[q&3]
			q >>= 2
		}
	}
}
