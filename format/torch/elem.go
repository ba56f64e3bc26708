package torch

import (
	"strings"

	"weightfs/format/tensor"
	"weightfs/format/torch/pickle"
)

// An elem is an element type of torch.
type elem struct {
	name  string       // without `torch.`
	dtype tensor.DType // zero where weightfs has none
	size  int64        // bytes of one element; for packed types of the smallest unit
	pack  int64        // elements in that unit, as weightfs counts them
	whole bool         // the elements are packed tighter than torch counts them, so only whole storages can be shown
}

// codes are the types that torch has beyond those of tensor's table, shown as what they are stored
// as: quantised values and bit fields as integers.
var codes = map[string]tensor.DType{
	"quint8": tensor.U8, "qint8": tensor.I8, "qint32": tensor.I32,
	"bits8": tensor.U8, "bits16": tensor.U16, "bits1x8": tensor.U8, "bits2x4": tensor.U8, "bits4x2": tensor.U8,
	"uint1": tensor.U8, "uint2": tensor.U8, "uint3": tensor.U8, "uint4": tensor.U8, "uint5": tensor.U8, "uint6": tensor.U8, "uint7": tensor.U8,
	"int1": tensor.I8, "int2": tensor.I8, "int3": tensor.I8, "int4": tensor.I8, "int5": tensor.I8, "int6": tensor.I8, "int7": tensor.I8,
}

// elems are all element types by torch's name.
var elems = func() map[string]elem {
	m := map[string]elem{
		"quint4x2":   {name: "quint4x2", dtype: tensor.U4, size: 1, pack: 2, whole: true},
		"quint2x4":   {name: "quint2x4", dtype: tensor.U2, size: 1, pack: 4, whole: true},
		"bcomplex32": {name: "bcomplex32", size: 4, pack: 1},
	}
	add := func(name string, d tensor.DType) {
		pack, size := d.Block()
		m[name] = elem{name: name, dtype: d, size: size, pack: pack}
	}
	for d := tensor.DType(1); d.Valid(); d++ {
		if d.Torch() != "" {
			add(d.Torch(), d)
		}
	}
	for name, d := range codes {
		add(name, d)
	}
	return m
}()

// storageClasses gives the element type that a class of storages stands for. Types newer than 2022
// have no class; their tensors lie in an UntypedStorage.
var storageClasses = map[string]string{
	"DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
	"LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
	"BoolStorage": "bool", "ComplexDoubleStorage": "complex128", "ComplexFloatStorage": "complex64",
	"QInt8Storage": "qint8", "QUInt8Storage": "quint8", "QInt32Storage": "qint32",
	"QUInt4x2Storage": "quint4x2", "QUInt2x4Storage": "quint2x4",
	"UntypedStorage": "uint8", "_UntypedStorage": "uint8",
}

// isTorch tells whether a global is torch's own: `torch`, `torch.cuda`, `torch.storage`.
func isTorch(g pickle.Global) bool {
	return g.Module == "torch" || strings.HasPrefix(g.Module, "torch.")
}

// storageElem is the element type of a storage's class.
func storageElem(class any) (elem, bool) {
	g, ok := class.(pickle.Global)
	if !ok || !isTorch(g) {
		return elem{}, false
	}
	e, ok := elems[storageClasses[g.Name]]
	return e, ok
}

// dtypeElem is the element type that a global such as torch.uint16 names. One that is not known has
// size 0.
func dtypeElem(v any) (elem, bool) {
	g, ok := v.(pickle.Global)
	if !ok || !isTorch(g) {
		return elem{}, false
	}
	if e, ok := elems[g.Name]; ok {
		return e, true
	}
	return elem{name: g.Name}, true
}
