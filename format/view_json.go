package format

import (
	"strings"

	"weightfs/format/tensor"
)

// json/: a tensor's object of tensors.json with what else is known of it.

func jsonSize(c *Checkpoint, t uint32) int64 { return int64(len(c.describe(t))) }

func openJSON(c *Checkpoint, t uint32) (Content, error) {
	return newSegments(Literal(c.describe(t))), nil
}

// describe renders the whole of json/PATH.json.
func (c *Checkpoint) describe(t uint32) []byte {
	r := &c.index.Records[t]
	info := c.index.Info(t)
	b := c.appendTensor(make([]byte, 0, 512), t)
	b = b[:len(b)-1] // the closing brace
	if start := c.dataStart[r.File]; start > 0 && c.index.Plain(t) {
		b = append(b, `, "data_offsets": `...)
		b = tensor.AppendJSON(b, []int64{r.Off - start, r.Off - start + r.Bytes})
	}
	b = append(b, `, "format": `...)
	b = tensor.AppendString(b, c.Shards[r.File].Format)
	b = append(b, `, "numpy": {"descr": `...)
	b = tensor.AppendString(b, info.DType.Descr())
	b = append(b, `, "shape": `...)
	b = tensor.AppendShape(b, info.DType.ByteShape(info.Shape, info.Bytes))
	b = append(b, '}')
	if name := info.DType.Torch(); name != "" {
		b = append(b, `, "torch": "torch.`...)
		b = append(append(b, name...), '"')
	}
	extra := c.index.Extra(t)
	if l := info.Layout; l != nil && l.Strides != nil && !strings.Contains(extra, `"strides": `) {
		b = append(b, `, "strides": `...)
		b = tensor.AppendJSON(b, l.Strides)
	}
	if scale, kind, ok := c.scaleOf(t); ok {
		b = append(b, `, "quantization": {"scheme": `...)
		b = tensor.AppendString(b, kind)
		b = append(b, `, "scale": `...)
		b = tensor.AppendString(b, scale)
		b = append(b, '}')
	}
	if extra != "" {
		b = append(append(b, ", "...), extra...)
	}
	return append(b, "}\n"...)
}
