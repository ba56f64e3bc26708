package decode

// tq2_0: 64 bytes of four two-bit values, d. Each 32 bytes hold 128 elements, bit pair by bit pair.
func tq2_0(y []float32, b []byte) {
	d := scale(b[64:])
	for run := range 8 {
		out, shift := y[32*run:][:32], run&3*2
		for i, q := range b[run>>2*32:][:32] {
			out[i] = d * less1[q>>shift&3]
		}
	}
}

// tq1_0: five ternary digits a byte, the highest first, of 32 bytes and of 16; four digits of 4
// bytes; d.
func tq1_0(y []float32, b []byte) {
	d := scale(b[52:])
	y = digits(y, b[:32], 5, d)
	y = digits(y, b[32:48], 5, d)
	digits(y, b[48:52], 4, d)
}

// digits decodes n digits of each byte, which is a fraction of 256: the next digit is the integer
// part of three times what the earlier ones leave.
func digits(y []float32, b []byte, n int, d float32) (rest []float32) {
	power := byte(1)
	for range n {
		out := y[:len(b)]
		for i, q := range b {
			out[i] = d * less1[uint16(q*power)*3>>8&3]
		}
		y, power = y[len(b):], power*3
	}
	return y
}
