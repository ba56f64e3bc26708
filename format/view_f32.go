package format

import (
	"io"
	"strings"

	"weightfs/format/decode"
	"weightfs/format/tensor"
)

// f32/: the elements decoded to float32, behind a NumPy header. Weights whose scales are other tensors
// are decoded with them, or are not in the view: numbers without their scale would be wrong ones.

// scaleWords are parts of the names that tensors of scales have, in every scheme known.
var scaleWords = []string{"scale", "quant_state", "SCB", "absmax"}

// anyScales tells whether a tensor of the checkpoint may be a scale of another.
func (c *Checkpoint) anyScales() bool {
	for _, word := range scaleWords {
		if c.index.Mentions(word) {
			return true
		}
	}
	return false
}

// scheme finds how a tensor is decoded with others.
func (c *Checkpoint) scheme(t uint32) (decode.Scheme, bool) {
	if !c.scales() {
		return decode.Scheme{}, false
	}
	return decode.SchemeOf(c.index.Info(t), c.find, c.quantization())
}

// scaleOf names the tensor without which a tensor's numbers mean nothing.
func (c *Checkpoint) scaleOf(t uint32) (name, kind string, ok bool) {
	if !c.scales() {
		return "", "", false
	}
	return decode.NeedsScale(c.index.Info(t), c.find)
}

// find is a decode.Lookup.
func (c *Checkpoint) find(name string) (tensor.Info, io.ReaderAt, bool) {
	t, ok := c.index.Tensor(name)
	if !ok {
		return tensor.Info{}, nil, false
	}
	seg, err := c.elements(t)
	if err != nil {
		return c.index.Info(t), nil, true
	}
	return c.index.Info(t), ContentReader{newSegments(seg)}, true
}

// configMost bounds a config.json that is read for what it says of quantisation.
const configMost = 1 << 20

// quantizationFiles are the side files on which it depends how a tensor is decoded.
var quantizationFiles = []string{"config.json", "quantize_config.json"}

// readQuantization looks into the checkpoint's quantizationFiles.
func (c *Checkpoint) readQuantization() decode.Config {
	for _, name := range quantizationFiles {
		for i := range c.side {
			if c.side[i].name != name {
				continue
			}
			s, err := c.side[i].open()
			if err != nil || s.Size() > configMost {
				continue
			}
			text := make([]byte, s.Size())
			if err := tensor.ReadFull(s, text, 0); err != nil {
				continue
			}
			if config := decode.ParseConfig(text); config != (decode.Config{}) {
				return config
			}
		}
	}
	return decode.Config{}
}

func (c *Checkpoint) f32Can(t uint32) bool {
	if _, ok := c.scheme(t); ok {
		return true
	}
	if _, _, needs := c.scaleOf(t); needs {
		return false
	}
	d := tensor.DType(c.index.Records[t].DType)
	if d.Kind() == tensor.Block && strings.Contains(c.index.Extra(t), bigEndianExtra) {
		return false
	}
	return decode.Supported(d)
}

// bigEndianExtra marks tensors of a big-endian GGUF. Its blocks are shown as stored: their inner fields
// are swapped, which no decoder knows.
const bigEndianExtra = `"stored_byteorder": "big"`

// floatShape is the shape of a tensor that is decoded.
func (c *Checkpoint) floatShape(t uint32) []uint64 {
	if s, ok := c.scheme(t); ok {
		return s.Shape
	}
	return c.index.Shape(t)
}

func f32Size(c *Checkpoint, t uint32) int64 {
	shape := c.floatShape(t)
	return int64(len(npyHeader("<f4", shape))) + 4*count(shape)
}

func openF32(c *Checkpoint, t uint32) (Content, error) {
	seg, err := c.floats(t)
	if err != nil {
		return nil, err
	}
	return newSegments(Literal(npyHeader("<f4", c.floatShape(t))), seg), nil
}

// floats is the segment of a tensor's elements as float32: for F32 the elements themselves.
func (c *Checkpoint) floats(t uint32) (Segment, error) {
	seg, err := c.elements(t)
	if err != nil {
		return Segment{}, err
	}
	if s, ok := c.scheme(t); ok {
		return c.scaledFloats(t, s, seg)
	}
	d := tensor.DType(c.index.Records[t].DType)
	if d == tensor.F32 {
		return seg, nil
	}
	n := count(c.index.Shape(t))
	return Produced(faulting{decode.Reader(d, n, ContentReader{newSegments(seg)}), c, t}, 4*n), nil
}

func (c *Checkpoint) scaledFloats(t uint32, s decode.Scheme, primary Segment) (Segment, error) {
	companions := make([]io.ReaderAt, len(s.Companions))
	for i, name := range s.Companions {
		scale, ok := c.index.Tensor(name)
		if !ok {
			return Segment{}, &tensor.FormatError{Tensor: name, Off: -1, Msg: "the tensor of scales is gone", Err: tensor.ErrMalformed}
		}
		if err := c.Shards[c.index.Records[scale].File].Fresh(); err != nil {
			return Segment{}, err
		}
		seg, err := c.elements(scale)
		if err != nil {
			return Segment{}, err
		}
		companions[i] = ContentReader{newSegments(seg)}
	}
	return Produced(faulting{s.Reader(ContentReader{newSegments(primary)}, companions), c, t}, 4*count(s.Shape)), nil
}
