package decode

// The K types hold 256 elements in groups of 16 or 32 that have scales of their own.

// q2K: 16 bytes of four-bit scale and minimum, 64 bytes of bit pairs, d, dmin.
func q2K(y []float32, b []byte) {
	d, dmin := scale(b[80:]), scale(b[82:])
	for g, s := range b[:16] {
		dl, ml := d*unsigned[s&15], float32(dmin*unsigned[s>>4])
		out, shift := y[16*g:][:16], g>>1&3*2
		for i, q := range b[16+g>>3*32+g&1*16:][:16] {
			out[i] = float32(dl*unsigned[q>>shift&3]) - ml
		}
	}
}

// q3K: 32 bytes of third bits, 64 bytes of bit pairs, 12 bytes of six-bit scales, d. A value is four
// less where its third bit is not set.
func q3K(y []float32, b []byte) {
	d := scale(b[108:])
	scales := b[96:108]
	for g := range 16 {
		s := scales[g&7]>>(g>>3*4)&15 | scales[8+g&3]>>(g>>2*2)&3<<4
		dl := d * less32[s]
		out, shift, bit := y[16*g:][:16], g>>1&3*2, g>>1
		high := b[g&1*16:][:16]
		for i, q := range b[32+g>>3*32+g&1*16:][:16] {
			out[i] = dl * less4[q>>shift&3|high[i]>>bit&1<<2]
		}
	}
}

// scaleMin unpacks the six-bit scale and minimum of a group from the 12 bytes of q4K and q5K.
func scaleMin(b []byte, group int) (s, m byte) {
	i := group & 3
	if group < 4 {
		return b[i] & 63, b[4+i] & 63
	}
	return b[8+i]&15 | b[i]>>2&0x30, b[8+i]>>4 | b[4+i]>>2&0x30
}

// q4K: d, dmin, 12 bytes of scales and minima, 128 bytes: 32 bytes hold a group of 32 in their low
// nibbles and the next in their high ones.
func q4K(y []float32, b []byte) {
	d, dmin := scale(b), scale(b[2:])
	for pair := range 4 {
		s0, m0 := scaleMin(b[4:16], 2*pair)
		s1, m1 := scaleMin(b[4:16], 2*pair+1)
		dl, ml := d*unsigned[s0], float32(dmin*unsigned[m0])
		dh, mh := d*unsigned[s1], float32(dmin*unsigned[m1])
		lo, hi := y[64*pair:][:32], y[64*pair+32:][:32]
		for i, q := range b[16+32*pair:][:32] {
			lo[i] = float32(dl*unsigned[q&15]) - ml
			hi[i] = float32(dh*unsigned[q>>4]) - mh
		}
	}
}

// q5K: as q4K, with 32 bytes of fifth bits before the nibbles, a bit for each group.
func q5K(y []float32, b []byte) {
	d, dmin := scale(b), scale(b[2:])
	high := b[16:48]
	for pair := range 4 {
		s0, m0 := scaleMin(b[4:16], 2*pair)
		s1, m1 := scaleMin(b[4:16], 2*pair+1)
		dl, ml := d*unsigned[s0], float32(dmin*unsigned[m0])
		dh, mh := d*unsigned[s1], float32(dmin*unsigned[m1])
		lo, hi := y[64*pair:][:32], y[64*pair+32:][:32]
		for i, q := range b[48+32*pair:][:32] {
			h := high[i] >> (2 * pair)
			lo[i] = float32(dl*unsigned[q&15|h&1<<4]) - ml
			hi[i] = float32(dh*unsigned[q>>4|h&2<<3]) - mh
		}
	}
}

// q6K: 128 bytes of low nibbles, 64 of high bit pairs, 16 signed scales, d.
func q6K(y []float32, b []byte) {
	d := scale(b[208:])
	for g, s := range b[192:208] {
		dl := d * signed[s]
		lane, row := g&1*16, g>>1&3 // the position in a run of 32, and which run of the half
		low := b[g>>3*64+row&1*32+lane:][:16]
		high := b[128+g>>3*32+lane:][:16]
		nibble, pair := row>>1*4, row*2
		out := y[16*g:][:16]
		for i, q := range low {
			out[i] = dl * less32[q>>nibble&15|high[i]>>pair&3<<4]
		}
	}
}
