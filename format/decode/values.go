package decode

import (
	"math"

	"weightfs/format/tensor"
)

// A wide kernel gives elements as float64, parts of them each.
type wide struct {
	parts  int
	values func(dst []float64, src []byte)
}

var wides = [...]wide{
	tensor.BOOL:    {1, words(1, func(b []byte) float64 { return float64(min(b[0], 1)) })},
	tensor.U8:      {1, words(1, func(b []byte) float64 { return float64(b[0]) })},
	tensor.I8:      {1, words(1, func(b []byte) float64 { return float64(int8(b[0])) })},
	tensor.U16:     {1, words(2, func(b []byte) float64 { return float64(le.Uint16(b)) })},
	tensor.I16:     {1, words(2, func(b []byte) float64 { return float64(int16(le.Uint16(b))) })},
	tensor.U32:     {1, words(4, func(b []byte) float64 { return float64(le.Uint32(b)) })},
	tensor.I32:     {1, words(4, func(b []byte) float64 { return float64(int32(le.Uint32(b))) })},
	tensor.U64:     {1, words(8, func(b []byte) float64 { return float64(le.Uint64(b)) })},
	tensor.I64:     {1, words(8, func(b []byte) float64 { return float64(int64(le.Uint64(b))) })},
	tensor.F64:     {1, words(8, double)},
	tensor.C32:     {2, words(2, func(b []byte) float64 { return float64(scale(b)) })},
	tensor.C64:     {2, words(4, func(b []byte) float64 { return float64(math.Float32frombits(le.Uint32(b))) })},
	tensor.C128:    {2, words(8, double)},
	tensor.F4:      {1, packed(4, func(q byte) float64 { return float64(e2m1[q]) })},
	tensor.F6_E2M3: {1, packed(6, func(q byte) float64 { return float64(minifloat(int(q), 2, 3, 1)) })},
	tensor.F6_E3M2: {1, packed(6, func(q byte) float64 { return float64(minifloat(int(q), 3, 2, 3)) })},
	tensor.I4:      {1, packed(4, func(q byte) float64 { return float64(int8(q<<4) >> 4) })},
	tensor.U4:      {1, packed(4, func(q byte) float64 { return float64(q) })},
	tensor.I2:      {1, packed(2, func(q byte) float64 { return float64(int8(q<<6) >> 6) })},
	tensor.U2:      {1, packed(2, func(q byte) float64 { return float64(q) })},
}

func double(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) }

// words makes values of whole words of size bytes.
func words(size int, value func(b []byte) float64) func(dst []float64, src []byte) {
	return func(dst []float64, src []byte) {
		for i := range dst {
			dst[i] = value(src[size*i:])
		}
	}
}

// packed makes values of fields of bits bits, the first lowest. ONNX says so of its types; no
// specification says it of those of safetensors, where it is what PyTorch and the OCP formats do.
func packed(bits int, value func(q byte) float64) func(dst []float64, src []byte) {
	return func(dst []float64, src []byte) {
		for i := range dst {
			at := bits * i
			word := uint16(src[at/8])
			if at/8+1 < len(src) {
				word |= uint16(src[at/8+1]) << 8
			}
			dst[i] = value(byte(word>>(at%8)) & (1<<bits - 1))
		}
	}
}

// Parts is the number of values that Values gives for each element: 2 for complex types, real part
// first, 1 for the others, and 0 for the few ggml types that are not decoded.
func Parts(d tensor.DType) int {
	if Supported(d) {
		return 1
	}
	if int(d) < len(wides) {
		return wides[d].parts
	}
	return 0
}

// Values gives every type that has Parts as numbers, for printing and statistics: len(dst)/Parts
// elements from the first bytes of src. They are exact but for 64-bit integers from 2^53 on, which
// are rounded (AppendValue prints those in full). A bool is 0 or 1.
func Values(d tensor.DType, dst []float64, src []byte) {
	if !Supported(d) {
		wides[d].values(dst, src)
		return
	}
	elems, size := d.Block()
	var buf [1024]float32
	for len(dst) > 0 {
		n := min(len(dst), len(buf))
		blocks := (int64(n) + elems - 1) / elems
		Floats(d, buf[:blocks*elems], src[:blocks*size])
		for i, v := range buf[:n] {
			dst[i] = float64(v)
		}
		dst, src = dst[n:], src[blocks*size:]
	}
}
