package decode

import (
	"io"
	"slices"
	"strings"

	"weightfs/format/tensor"
)

// fp4Groups decodes four-bit floats, two in a byte, the first in the low nibble, with a scale of one
// byte for each group of them. Scales lie in the order of the groups.
type fp4Groups struct {
	group  int64
	values *[16]float32
	scales *[256]float32
	packed io.ReaderAt
	scale  io.ReaderAt
	global io.ReaderAt // one float32 for all scales; nil for none
	divide bool        // the scales are divided by it, not multiplied
}

func (z fp4Groups) decode(s *scratch, dst []float32, first int64) error {
	raw, err := s.read(0, z.packed, first/2, int64(len(dst))/2)
	if err != nil {
		return err
	}
	scales, err := s.read(1, z.scale, first/z.group, int64(len(dst))/z.group)
	if err != nil {
		return err
	}
	table, err := z.table(s)
	if err != nil {
		return err
	}
	for _, b := range scales {
		scale, out := table[b], dst[:z.group]
		for i, q := range raw[:z.group/2] {
			out[2*i] = z.values[q&15] * scale
			out[2*i+1] = z.values[q>>4] * scale
		}
		dst, raw = dst[z.group:], raw[z.group/2:]
	}
	return nil
}

// table holds the scale for each byte, with the global one worked in.
func (z fp4Groups) table(s *scratch) (*[256]float32, error) {
	if z.global == nil {
		return z.scales, nil
	}
	global, err := s.floats(0, tensor.F32, z.global, 0, 1)
	if err != nil {
		return nil, err
	}
	table := *z.scales
	for i := range table {
		if z.divide {
			table[i] /= global[0]
		} else {
			table[i] *= global[0]
		}
	}
	return &table, nil
}

// e2m1Double doubles the values, for scales that are halved so that 2^128 is in reach.
var e2m1Double = func() (table [16]float32) {
	for i, v := range e2m1 {
		table[i] = 2 * v
	}
	return table
}()

// mxfp4Scheme is gpt-oss's `…_blocks` [.., G, 16] with `…_scales` [.., G], and packed weights [.., N/2]
// with scales [.., N/32] of compressed-tensors and Model Optimizer. A value is that of its four bits
// times 2^(scale-127); the decoded rows are those of the file (transformers transposes them).
func mxfp4Scheme(t tensor.Info, find Lookup, _ Config) (Scheme, bool) {
	name, shape, ok := mxfp4Blocks(t, find)
	if !ok {
		name, shape, ok = packedGroups(t, find, 32, func(d tensor.DType) bool { return scaleType(d) == tensor.F8_E8M0 })
	}
	return Scheme{
		Kind: "mxfp4", Companions: []string{name}, Shape: shape, unit: 32,
		bind: func(primary io.ReaderAt, companions []io.ReaderAt) decoder {
			return fp4Groups{
				group: 32, values: &e2m1Double, scales: &e8m0Half, packed: primary, scale: companions[0],
			}.decode
		},
	}, ok
}

func mxfp4Blocks(t tensor.Info, find Lookup) (name string, shape []uint64, ok bool) {
	module, ok := strings.CutSuffix(t.Name, "blocks")
	last := len(t.Shape) - 1
	if !ok || t.DType != tensor.U8 || last < 1 || t.Shape[last] != 16 {
		return "", nil, false
	}
	name = module + "scales"
	scale, _, ok := find(name)
	if !ok || scaleType(scale.DType) != tensor.F8_E8M0 || !slices.Equal(scale.Shape, t.Shape[:last]) {
		return "", nil, false
	}
	shape = slices.Clone(t.Shape[:last])
	shape[last-1] *= 32
	return name, shape, true
}

// packedGroups recognises weights [.., N/2] in bytes, or [.., N] of F4, with scales [.., N/group].
func packedGroups(t tensor.Info, find Lookup, group uint64, scaleOK func(tensor.DType) bool) (string, []uint64, bool) {
	last := len(t.Shape) - 1
	if last < 0 || t.DType != tensor.U8 && t.DType != tensor.F4 {
		return "", nil, false
	}
	plain := t
	plain.Name = strings.TrimSuffix(t.Name, "_packed")
	name, scale, ok := scaleOf(plain, find)
	if !ok || !scaleOK(scale.DType) {
		return "", nil, false
	}
	shape := slices.Clone(t.Shape)
	if t.DType == tensor.U8 {
		shape[last] *= 2
	}
	groups := slices.Clone(shape)
	groups[last] /= group
	return name, shape, shape[last]%group == 0 && slices.Equal(scale.Shape, groups)
}

// nvfp4Scheme has groups of 16 with F8_E4M3 scales, which one number multiplies (Model Optimizer's
// `weight_scale_2`) or divides (compressed-tensors' `weight_global_scale`).
func nvfp4Scheme(t tensor.Info, find Lookup, _ Config) (Scheme, bool) {
	name, shape, ok := packedGroups(t, find, 16, func(d tensor.DType) bool { return d == tensor.F8_E4M3 })
	if !ok {
		return Scheme{}, false
	}
	module := strings.TrimSuffix(t.Name, "_packed")
	global, divide := module+"_scale_2", false
	if module != t.Name {
		global, divide = module+"_global_scale", true
	}
	one, _, ok := find(global)
	n, err := tensor.Elements(one.Shape)
	return Scheme{
		Kind: "nvfp4", Companions: []string{name, global}, Shape: shape, unit: 16,
		bind: func(primary io.ReaderAt, companions []io.ReaderAt) decoder {
			return fp4Groups{
				group: 16, values: &e2m1, scales: &e4m3, packed: primary, scale: companions[0],
				global: companions[1], divide: divide,
			}.decode
		},
	}, ok && one.DType == tensor.F32 && n == 1 && err == nil
}
