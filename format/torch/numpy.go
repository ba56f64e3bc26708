package torch

import (
	"encoding/binary"
	"fmt"
	"math"

	"weightfs/format/torch/pickle"
)

// numpyValue gives a number of NumPy's, or a few words for an array.
func numpyValue(o *pickle.Object) (any, bool) {
	if !o.Is("numpy.core.multiarray", "_reconstruct") && !o.Is("numpy._core.multiarray", "_reconstruct") || len(o.States) == 0 {
		return numpyScalar(o)
	}
	state, ok := o.States[0].(*pickle.Tuple)
	if !ok || len(state.Items) < 3 {
		return nil, false
	}
	dtype := "object"
	if d, ok := state.Items[2].(*pickle.Object); ok && len(d.Args.Items) > 0 {
		dtype = text(d.Args.Items[0])
	}
	return fmt.Sprintf("a NumPy array of %s, shape %s", clip(dtype), pickle.AppendStr(nil, state.Items[1])), true
}

// numpyScalar reads the number in scalar(dtype(code, …), bytes), which is how NumPy pickles a best
// loss or a step that was never made a Python number.
func numpyScalar(o *pickle.Object) (any, bool) {
	if !o.Is("numpy.core.multiarray", "scalar") && !o.Is("numpy._core.multiarray", "scalar") || len(o.Args.Items) != 2 {
		return nil, false
	}
	dtype, isDType := o.Args.Items[0].(*pickle.Object)
	b, isBytes := o.Args.Items[1].(pickle.Bytes)
	if !isDType || !isBytes || !dtype.Is("numpy", "dtype") || len(dtype.Args.Items) == 0 || bigEndian(dtype) {
		return nil, false
	}
	p := make([]byte, 8)
	copy(p, b)
	bits := binary.LittleEndian.Uint64(p)
	switch code := text(dtype.Args.Items[0]); {
	case code == "f8" && len(b) == 8:
		return math.Float64frombits(bits), true
	case code == "f4" && len(b) == 4:
		return float64(math.Float32frombits(uint32(bits))), true
	case code == "b1" && len(b) == 1:
		return bits != 0, true
	case code == "i8" && len(b) == 8:
		return int64(bits), true
	case code == "i4" && len(b) == 4:
		return int64(int32(bits)), true
	case code == "u8" && len(b) == 8:
		return bits, true
	}
	return nil, false
}

// bigEndian looks at the state of a dtype: (version, byte order, …).
func bigEndian(dtype *pickle.Object) bool {
	if len(dtype.States) == 0 {
		return false
	}
	state, ok := dtype.States[0].(*pickle.Tuple)
	return ok && len(state.Items) > 1 && text(state.Items[1]) == ">"
}
