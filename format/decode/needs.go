package decode

import (
	"strings"

	"weightfs/format/tensor"
)

// A pattern is how a scheme names a quantised tensor and the scales beside it.
type pattern struct{ suffix, scales, kind string }

// The integers of GPTQ and AWQ have the same names; `qweight` stands for both.
var patterns = []pattern{
	{"blocks", "scales", "mxfp4"},
	{"weight_packed", "weight_scale", "compressed-tensors"},
	{"qweight", "scales", "qweight"},
	{"W_q", "scale", "hqq"},
	{"weight", "SCB", "bnb-int8"},
	{"weight", "scales", "mlx"},
	{"", "_scale_inv", "scaled"},
	{"", "_scale", "scaled"},
	{"weight", "scale", "scaled"},
	{"weight", "scale_weight", "scaled"},
}

// NeedsScale names the tensor of scales of a quantised tensor, whether SchemeOf decodes it or not:
// what is not decoded must not pass for numbers. Kind is the scheme as far as names tell it.
func NeedsScale(t tensor.Info, find Lookup) (companion, kind string, ok bool) {
	// bitsandbytes' weights may have any type, and the description names what scales there are.
	for _, name := range []string{t.Name + ".quant_state.bitsandbytes__nf4", t.Name + ".quant_state.bitsandbytes__fp4"} {
		if _, _, ok := find(name); ok {
			return t.Name + ".absmax", "bnb-4bit", true
		}
	}
	if !quantised(t.DType) {
		return "", "", false
	}
	for _, p := range patterns {
		module, ok := strings.CutSuffix(t.Name, p.suffix)
		if !ok {
			continue
		}
		if _, _, ok := find(module + p.scales); ok {
			return module + p.scales, p.kind, true
		}
	}
	return "", "", false
}

// quantised tells whether the numbers of a type may be codes: integers and floats of a byte or less.
func quantised(d tensor.DType) bool {
	elems, size := d.Block()
	return d.Kind() == tensor.Int || d.Kind() == tensor.Uint || d.Kind() == tensor.Float && size*8/elems <= 8
}
