package decode

import (
	"io"
	"math"

	"weightfs/format/tensor"
)

// A Lookup finds a tensor of the checkpoint by its name. Its bytes, elements only, are little-endian
// and row-major; nil where they are not at hand, which costs what can only be told from them.
type Lookup func(name string) (info tensor.Info, data io.ReaderAt, ok bool)

// A Scheme says how a tensor is decoded that means nothing alone: its values are products with
// scales that other tensors hold.
type Scheme struct {
	Kind       string   // `fp8`, `mxfp4`, `nvfp4`, `gptq`, `awq`, `bnb-4bit`
	Companions []string // the other tensors, in the order in which Reader takes their bytes
	Shape      []uint64 // of the decoded tensor; its rows are those that are stored, never transposed

	unit int64
	bind func(primary io.ReaderAt, companions []io.ReaderAt) decoder
}

// Reader shows the decoded tensor as the bytes of little-endian float32. primary and companions give
// elements only, as a Lookup does. All that is said of the function Reader holds.
func (s Scheme) Reader(primary io.ReaderAt, companions []io.ReaderAt) io.ReaderAt {
	elems, _ := tensor.Elements(s.Shape)
	return &reader{int64(elems), s.unit, s.bind(primary, companions)}
}

// SchemeOf recognises a tensor that is decoded with companions, by its name, theirs, and the shapes
// of all of them.
func SchemeOf(t tensor.Info, find Lookup, c Config) (Scheme, bool) {
	for _, recognise := range []func(tensor.Info, Lookup, Config) (Scheme, bool){
		fp8Scheme, mxfp4Scheme, nvfp4Scheme, bnbScheme, gptqScheme, awqScheme,
	} {
		if s, ok := recognise(t, find, c); ok {
			n, err := tensor.Elements(s.Shape)
			return s, err == nil && n > 0 && n <= math.MaxInt64/4
		}
	}
	return Scheme{}, false
}
