package compare

import (
	"math"

	"weightfs/format/tensor"
)

// Values are the differences of elements that belong together. Where one is NaN or infinite and the
// other is not the same it is Special, and the rest is about finite numbers.
type Values struct {
	Differing uint64  // elements that are not equal, Special included
	Special   uint64  // of those, not finite in one or both
	MaxAbs    float64 // the largest |a-b|
	MaxRel    float64 // the largest |a-b| / max(|a|, |b|)

	// Where the types differ, the root of the mean square of a-b over that of the numbers, and whether
	// it is no larger than rounding to the coarser type explains.
	RMS    float64
	Within bool
}

// values sums up differences.
type values struct {
	Values
	squares, energy float64
}

// add compares numbers one by one.
func add[F float32 | float64](v *values, a, b []F) {
	b = b[:len(a)]
	var squares, energyA, energyB float64 // in registers, and none waits for another
	most, rel, equal := v.MaxAbs, v.MaxRel, 0
	for i, p := range a {
		x, y := float64(p), float64(b[i])
		d := math.Abs(x - y)
		if d-d != 0 {
			if !v.special(x, y) {
				equal++
			}
			continue
		}
		squares += float64(d * d)
		energyA += float64(x * x)
		energyB += float64(y * y)
		if d == 0 {
			equal++
			continue
		}
		if d > most {
			most = d
		}
		x, y = math.Abs(x), math.Abs(y)
		if x < y {
			x = y
		}
		if d > float64(rel*x) {
			rel = d / x
		}
	}
	v.Differing += uint64(len(a) - equal)
	v.MaxAbs, v.MaxRel = most, rel
	v.squares += squares
	v.energy += energyA + energyB
}

// special compares two numbers of which one is not finite, or whose distance is beyond float64.
func (v *values) special(x, y float64) bool {
	if x == y || math.IsNaN(x) && math.IsNaN(y) {
		return false
	}
	v.Special++
	return true
}

func (v *values) summary(a, b tensor.DType) *Values {
	out := v.Values
	if a == b {
		return &out
	}
	if v.energy > 0 {
		out.RMS = math.Sqrt(2 * v.squares / v.energy)
	}
	out.Within = v.Special == 0 && out.RMS <= max(rounding(a), rounding(b))
	return &out
}

// rounding is about the largest RMS that storing numbers of a bell curve in a type makes of them.
func rounding(d tensor.DType) float64 {
	switch d {
	case tensor.BF16:
		return 0x1p-8
	case tensor.F16:
		return 0x1p-11
	case tensor.F8_E4M3, tensor.F8_E4M3FNUZ, tensor.F6_E2M3:
		return 0x1p-4
	case tensor.F8_E5M2, tensor.F8_E5M2FNUZ, tensor.F6_E3M2:
		return 0x1p-3
	case tensor.F32, tensor.F64, tensor.C64, tensor.C128:
		return 0x1p-23
	}
	elems, size := d.Block()
	return math.Exp2(2 - 8*float64(size)/float64(elems)) // a bit more halves it
}
