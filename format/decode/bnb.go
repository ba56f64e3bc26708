package decode

import (
	"encoding/json"
	"io"
	"math"

	"weightfs/format/tensor"
)

// maxQuantState bounds bitsandbytes' description of a tensor, a JSON object of some 200 bytes.
const maxQuantState = 64 << 10

// A quantState is that description.
type quantState struct {
	Shape           []uint64 `json:"shape"`
	BlockSize       int64    `json:"blocksize"`
	NestedBlockSize int64    `json:"nested_blocksize"`
	NestedOffset    float64  `json:"nested_offset"`
}

// bnbScheme is bitsandbytes' 4-bit weights, NF4 or FP4: numbers of values in a map of 16, the first
// of a byte in its high nibble, times a scale for each block. With double quantisation the scales
// are bytes themselves: numbers in a map of 256, times a scale for each block of scales, plus an
// offset. The weight's own type says nothing: it may pretend to be BF16 (quant_storage).
func bnbScheme(t tensor.Info, find Lookup, _ Config) (Scheme, bool) {
	state, ok := findQuantState(t, find)
	if !ok {
		return Scheme{}, false
	}
	n, err := tensor.Elements(state.Shape)
	if err != nil || n == 0 || n > math.MaxInt64/4 || int64((n+1)/2) > t.Bytes || state.BlockSize < 1 {
		return Scheme{}, false
	}
	blocks := ceilDiv(int64(n), state.BlockSize)
	names := []string{t.Name + ".quant_map", t.Name + ".absmax"}
	ok = holds(find, names[0], tensor.F32, 16)
	nested := !holds(find, names[1], tensor.F32, blocks)
	if nested {
		names = append(names, t.Name+".nested_quant_map", t.Name+".nested_absmax")
		ok = ok && state.NestedBlockSize > 0 && holds(find, names[1], tensor.U8, blocks) &&
			holds(find, names[2], tensor.F32, 256) && holds(find, names[3], tensor.F32, ceilDiv(blocks, state.NestedBlockSize))
	}
	return Scheme{
		Kind: "bnb-4bit", Companions: names, Shape: state.Shape, unit: 1,
		bind: func(primary io.ReaderAt, companions []io.ReaderAt) decoder {
			return bnb{state, nested, primary, companions}.decode
		},
	}, ok
}

// holds tells whether a tensor has that type and at least n elements.
func holds(find Lookup, name string, d tensor.DType, n int64) bool {
	t, _, ok := find(name)
	elems, err := tensor.Elements(t.Shape)
	return ok && t.DType == d && err == nil && elems >= uint64(n)
}

func findQuantState(t tensor.Info, find Lookup) (state quantState, ok bool) {
	for _, kind := range []string{"nf4", "fp4"} {
		info, data, ok := find(t.Name + ".quant_state.bitsandbytes__" + kind)
		if !ok || data == nil || info.Bytes > maxQuantState {
			continue
		}
		text := make([]byte, info.Bytes)
		if tensor.ReadFull(data, text, 0) == nil && json.Unmarshal(text, &state) == nil {
			return state, true
		}
	}
	return quantState{}, false
}

type bnb struct {
	state      quantState
	nested     bool
	packed     io.ReaderAt
	companions []io.ReaderAt
}

func (z bnb) decode(s *scratch, dst []float32, first int64) error {
	last := first + int64(len(dst)) - 1
	raw, err := s.read(0, z.packed, first/2, last/2-first/2+1)
	if err != nil {
		return err
	}
	from := first / z.state.BlockSize
	absmax, err := z.absmax(s, from, last/z.state.BlockSize-from+1)
	if err != nil {
		return err
	}
	values, err := s.floats(1, tensor.F32, z.companions[0], 0, 16)
	if err != nil {
		return err
	}
	table := (*[16]float32)(values)
	nibble := first & 1
	for len(dst) > 0 {
		scale := absmax[first/z.state.BlockSize-from]
		n := min(int64(len(dst)), z.state.BlockSize-first%z.state.BlockSize)
		for i := range dst[:n] {
			dst[i] = table[raw[nibble>>1]>>(^nibble&1*4)&15] * scale
			nibble++
		}
		dst, first = dst[n:], first+n
	}
	return nil
}

// absmax makes the scales of n blocks.
func (z bnb) absmax(s *scratch, from, n int64) ([]float32, error) {
	if !z.nested {
		return s.floats(0, tensor.F32, z.companions[1], from, n)
	}
	codes, err := s.read(1, z.companions[1], from, n)
	if err != nil {
		return nil, err
	}
	values, err := s.floats(1, tensor.F32, z.companions[2], 0, 256)
	if err != nil {
		return nil, err
	}
	table := (*[256]float32)(values)
	first, last := from/z.state.NestedBlockSize, (from+n-1)/z.state.NestedBlockSize
	scales, err := s.floats(2, tensor.F32, z.companions[3], first, last-first+1)
	if err != nil {
		return nil, err
	}
	out := s.buffer(0, n)
	for i, code := range codes {
		scale := scales[(from+int64(i))/z.state.NestedBlockSize-first]
		out[i] = float32(table[code]*scale) + float32(z.state.NestedOffset)
	}
	return out, nil
}
