package decode

// The IQ types keep numbers of points of a grid. The points are data: scripts/gen_iq_grids.py takes
// them from gguf-py. A point of eight elements is eight bit pairs, one of four is four nibbles.

// level2 and level3 are the magnitudes that the codes of a point stand for; level3s those of IQ3_S.
var (
	level2  = [4]float32{8, 25, 43}
	level3  = [8]float32{4, 12, 20, 28, 36, 44, 52, 62}
	level3s = [8]float32{1, 3, 5, 7, 9, 11, 13, 15}
	ternary = [4]float32{-1, 0, 1}
)

// signs8 completes seven sign bits: the eighth makes their number even.
var signs8 = func() (table [128]byte) {
	for i := range table {
		parity := i ^ i>>4
		parity ^= parity >> 2
		parity ^= parity >> 1
		table[i] = byte(i | parity&1<<7)
	}
	return table
}()

// A palette2 holds a scale's products with all magnitudes, positive and then negative.
type palette2 [8]float32

func newPalette2(db float32) (p palette2) {
	for i, v := range level2[:3] {
		p[i] = float32(db * v)
		p[4+i] = p[i] * -1
	}
	return p
}

// fill writes the eight elements of a point, negated where signs has a bit.
func (p *palette2) fill(y []float32, point uint16, signs byte) {
	y = y[:8]
	for i := range y {
		y[i] = p[point&3|uint16(signs&1)<<2]
		point, signs = point>>2, signs>>1
	}
}

// A palette3 is the same for eight magnitudes.
type palette3 [16]float32

func newPalette3(db float32, level *[8]float32) (p palette3) {
	for i, v := range level {
		p[i] = float32(db * v)
		p[8+i] = p[i] * -1
	}
	return p
}

// fill writes the elements of two points of four, negated where signs has a bit.
func (p *palette3) fill(y []float32, first, second uint16, signs byte) {
	y = y[:8]
	points := uint32(first) | uint32(second)<<16
	for i := range y {
		y[i] = p[points&7|uint32(signs&1)<<3]
		points, signs = points>>4, signs>>1
	}
}

// quarter is the scale of a group of IQ2: d * (0.5 + s) / 4.
func quarter(d float32, s byte) float32 {
	return float32(d*(0.5+unsigned[s])) * 0.25
}

// iq2XXS: d, then for each 32 elements four point numbers and a word of four times seven signs and
// a four-bit scale.
func iq2XXS(y []float32, b []byte) {
	d := scale(b)
	for g := range 8 {
		points, word := b[2+8*g:][:4], le.Uint32(b[6+8*g:])
		p := newPalette2(quarter(d, byte(word>>28)))
		for i, n := range points {
			p.fill(y[32*g+8*i:], grids.iq2xxs[n], signs8[word>>(7*i)&127])
		}
	}
}

// iq2XS: d, 32 words of nine bits of point number and seven signs, four-bit scales of 16 elements.
func iq2XS(y []float32, b []byte) {
	d := scale(b)
	for g := range 16 {
		p := newPalette2(quarter(d, b[66+g/2]>>(g&1*4)&15))
		for i := range 2 {
			word := le.Uint16(b[2+4*g+2*i:])
			p.fill(y[16*g+8*i:], grids.iq2xs[word&511], signs8[word>>9])
		}
	}
}

// iq2S: d, 32 low bytes of point numbers, 32 bytes of signs, 8 bytes of two high bits, four-bit
// scales of 16 elements.
func iq2S(y []float32, b []byte) {
	d := scale(b)
	for g := range 16 {
		p := newPalette2(quarter(d, b[74+g/2]>>(g&1*4)&15))
		for i := 2 * g; i < 2*g+2; i++ {
			high := uint16(b[66+i/4]) >> (i & 3 * 2) & 3
			p.fill(y[8*i:], grids.iq2s[high<<8|uint16(b[2+i])], b[34+i])
		}
	}
}

// iq3XXS: d, 64 point numbers of four elements, for each 32 elements a word as in iq2XXS.
func iq3XXS(y []float32, b []byte) {
	d := scale(b)
	for g := range 8 {
		word := le.Uint32(b[66+4*g:])
		p := newPalette3(float32(d*(0.5+unsigned[word>>28]))*0.5, &level3)
		for i := range 4 {
			n := b[2+8*g+2*i:][:2]
			p.fill(y[32*g+8*i:], grids.iq3xxs[n[0]], grids.iq3xxs[n[1]], signs8[word>>(7*i)&127])
		}
	}
}

// iq3S: d, 64 low bytes of point numbers, 8 bytes of ninth bits, 32 bytes of signs, four-bit scales
// of 32 elements that stand for odd numbers.
func iq3S(y []float32, b []byte) {
	d := scale(b)
	for g := range 8 {
		p := newPalette3(d*unsigned[1+b[106+g/2]>>(g&1*4)&15*2], &level3s)
		high := uint16(b[66+g])
		for i := range 4 {
			n := b[2+8*g+2*i:][:2]
			first := grids.iq3s[high<<8&256|uint16(n[0])]
			second := grids.iq3s[high<<7&256|uint16(n[1])]
			p.fill(y[32*g+8*i:], first, second, b[74+4*g+i])
			high >>= 2
		}
	}
}

// A palette1 holds a scale's products with -1, 0 and 1, all moved by an eighth.
type palette1 [4]float32

func newPalette1(dl float32, down bool) (p palette1) {
	delta := float32(0.125)
	if down {
		delta = -delta
	}
	for i, v := range ternary[:3] {
		p[i] = dl * (v + delta)
	}
	return p
}

func (p *palette1) fill(y []float32, point uint16) {
	y = y[:8]
	for i := range y {
		y[i] = p[point&3]
		point >>= 2
	}
}

// iq1S: d, 32 low bytes of point numbers, for each 32 elements a word of four times three high bits,
// a three-bit scale and the direction of the shift.
func iq1S(y []float32, b []byte) {
	d := scale(b)
	for g := range 8 {
		word := le.Uint16(b[34+2*g:])
		p := newPalette1(d*unsigned[word>>12&7*2+1], word&0x8000 != 0)
		for i, low := range b[2+4*g:][:4] {
			p.fill(y[32*g+8*i:], grids.iq1s[word>>(3*i)&7<<8|uint16(low)])
		}
	}
}

// iq1M: 32 low bytes of point numbers; 16 bytes whose nibbles are three high bits and a direction;
// four words of four three-bit scales and, in their upper nibbles, a quarter of d each.
func iq1M(y []float32, b []byte) {
	var s [4]uint16
	var bits uint16
	for i := range s {
		s[i] = le.Uint16(b[48+2*i:])
		bits |= s[i] >> 12 << (4 * i)
	}
	d := half(bits)
	for i, low := range b[:32] {
		nibble := b[32+i/2] >> (i & 1 * 4)
		p := newPalette1(d*unsigned[s[i/8]>>(i>>1&3*3)&7*2+1], nibble&8 != 0)
		p.fill(y[8*i:], grids.iq1s[uint16(nibble&7)<<8|uint16(low)])
	}
}

// level4 holds the values that the nibbles of IQ4 stand for.
var level4 = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// iq4NL: d, 16 bytes with the first 16 elements in their low nibbles.
func iq4NL(y []float32, b []byte) {
	nonlinear(y, b[2:18], scale(b))
}

// iq4XS: d, two high bits and four low bits of a scale for each 32 elements, then nibbles as iq4NL.
func iq4XS(y []float32, b []byte) {
	d, high := scale(b), le.Uint16(b[2:])
	for g := range 8 {
		s := b[4+g/2]>>(g&1*4)&15 | byte(high>>(2*g)&3)<<4
		nonlinear(y[32*g:], b[8+16*g:][:16], d*less32[s])
	}
}

func nonlinear(y []float32, b []byte, d float32) {
	lo, hi := y[:16], y[16:32]
	for i, q := range b[:16] {
		lo[i] = d * level4[q&15]
		hi[i] = d * level4[q>>4]
	}
}
