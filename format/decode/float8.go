package decode

import "math"

// The values of all bytes. NaN is the quiet one of ml_dtypes, with the sign of the byte.
var (
	e4m3     = float8(3, 7, func(b byte) (float32, bool) { return nan(b), b&0x7f == 0x7f })
	e5m2     = float8(2, 15, ieeeSpecial)
	e4m3fnuz = float8(3, 8, func(b byte) (float32, bool) { return nan(b), b == 0x80 })
	e5m2fnuz = float8(2, 16, func(b byte) (float32, bool) { return nan(b), b == 0x80 })
	e8m0     = scales8()
)

// float8 tabulates a float of one sign bit, 7-mant exponent bits and mant mantissa bits.
func float8(mant, bias int, special func(b byte) (float32, bool)) (table [256]float32) {
	for i := range table {
		v, ok := special(byte(i))
		if !ok {
			v = minifloat(i, 7-mant, mant, bias)
		}
		table[i] = v
	}
	return table
}

// minifloat is the value of a small float without infinities: sign, exp and mant bits.
func minifloat(bits, exp, mant, bias int) float32 {
	e, m := bits>>mant&(1<<exp-1), bits&(1<<mant-1)
	v := math.Ldexp(float64(m), 1-bias-mant)
	if e > 0 {
		v = math.Ldexp(float64(m|1<<mant), e-bias-mant)
	}
	if bits>>(exp+mant)&1 == 1 {
		v = -v
		if m|e == 0 {
			v = math.Copysign(0, -1)
		}
	}
	return float32(v)
}

func ieeeSpecial(b byte) (float32, bool) {
	if b&3 == 0 {
		return float32(math.Inf(1 - int(b>>7)*2)), b&0x7c == 0x7c
	}
	return nan(b), b&0x7c == 0x7c
}

func nan(b byte) float32 { return math.Float32frombits(uint32(b&0x80)<<24 | 0x7fc00000) }

// scales8 tabulates F8_E8M0: powers of two from 2^-127, which is subnormal, to 2^127; 255 is NaN.
func scales8() (table [256]float32) {
	for i := range 255 {
		table[i] = float32(math.Ldexp(1, i-127))
	}
	table[255] = nan(0)
	return table
}
