package decode

import (
	"math"
	"strconv"

	"weightfs/format/tensor"
)

// AppendValue prints element i of src, which begins at a block, as Python would: an integer in full,
// a float with the fewest digits that tell it from its neighbours of 64 bits (F64, C128) or 32 bits
// (the others). The type has Parts.
func AppendValue(dst []byte, d tensor.DType, src []byte, i int) []byte {
	switch d {
	case tensor.U64:
		return strconv.AppendUint(dst, le.Uint64(src[8*i:]), 10)
	case tensor.I64:
		return strconv.AppendInt(dst, int64(le.Uint64(src[8*i:])), 10)
	}
	elems, size := d.Block()
	block, at := i/int(elems), i%int(elems)
	var buf [256]float64
	values := buf[:(at+1)*Parts(d)]
	Values(d, values, src[block*int(size):])
	return appendParts(dst, d, values[at*Parts(d):])
}

func appendParts(dst []byte, d tensor.DType, parts []float64) []byte {
	digits := 32
	if d == tensor.F64 || d == tensor.C128 {
		digits = 64
	}
	switch v := parts[0]; d.Kind() {
	case tensor.Bool:
		if v == 0 {
			return append(dst, "False"...)
		}
		return append(dst, "True"...)
	case tensor.Int, tensor.Uint:
		return strconv.AppendInt(dst, int64(v), 10)
	case tensor.Complex:
		dst = appendFloat(dst, v, digits)
		if im := parts[1]; !math.Signbit(im) || math.IsNaN(im) {
			dst = append(dst, '+')
		}
		return append(appendFloat(dst, parts[1], digits), 'j')
	default:
		return appendFloat(dst, v, digits)
	}
}

func appendFloat(dst []byte, v float64, digits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "nan"...)
	case math.IsInf(v, 1):
		return append(dst, "inf"...)
	case math.IsInf(v, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, digits)
}
