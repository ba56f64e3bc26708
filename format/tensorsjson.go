package format

import (
	"io"
	"strings"
	"unicode/utf8"

	"weightfs/format/tensor"
)

// tensors.json: every tensor, every file, every warning.

// A Rendered is a text that is rendered as it is read, of a size that is known.
type Rendered interface {
	io.ReaderAt
	Size() int64
}

// TensorsJSON is tensors.json with the tensors of a list, a tensor a line.
func (c *Checkpoint) TensorsJSON(list []int) Rendered {
	return c.tensorsJSON(len(list), func(i int) uint32 { return uint32(list[i]) })
}

func (c *Checkpoint) tensorsJSON(n int, tensor func(i int) uint32) *rendering {
	return newRendering(n+2, func(b []byte, i int) []byte {
		switch {
		case i == 0:
			return c.appendHead(b)
		case i == n+1:
			return c.appendTail(b)
		}
		b = append(b, "    "...)
		b = c.appendTensor(b, tensor(i-1))
		if i < n {
			b = append(b, ',')
		}
		return append(b, '\n')
	})
}

// appendTensor renders a tensor's object of tensors.json.
func (c *Checkpoint) appendTensor(b []byte, t uint32) []byte {
	r := &c.index.Records[t]
	name := c.index.Name(t)
	b = append(b, `{"name": `...)
	b = tensor.AppendString(b, name)
	if !utf8.ValidString(name) {
		b = append(b, `, "name_hex": `...)
		b = tensor.AppendJSON(b, []byte(name))
	}
	b = append(b, `, "path": `...)
	b = tensor.AppendString(b, c.index.Path(r.Node))
	b = append(b, `, "dtype": `...)
	b = tensor.AppendString(b, tensor.DType(r.DType).String())
	b = append(b, `, "shape": `...)
	b = tensor.AppendShape(b, c.index.Shape(t))
	b = append(b, `, "nbytes": `...)
	b = tensor.AppendJSON(b, r.Bytes)
	b = append(b, `, "file": `...)
	b = tensor.AppendString(b, c.Shards[r.File].Name)
	if c.index.Plain(t) {
		b = append(b, `, "offset": `...)
		b = tensor.AppendJSON(b, r.Off)
	} else {
		b = append(b, `, "offset": null, "stored": `...)
		info := c.index.Info(t)
		b = tensor.AppendString(b, info.Layout.Reason())
	}
	return append(b, '}')
}

func (c *Checkpoint) appendHead(b []byte) []byte {
	t := c.total()
	b = append(b, `{"schema": 1, "source": `...)
	b = tensor.AppendString(b, c.Source)
	b = append(b, `, "format": `...)
	b = tensor.AppendString(b, c.Format)
	b = append(b, `, "total_bytes": `...)
	b = tensor.AppendJSON(b, t.bytes)
	b = append(b, `, "total_elements": `...)
	b = tensor.AppendJSON(b, t.elements)
	b = append(b, ",\n  \"files\": ["...)
	for i, s := range c.Shards {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "\n    {\"name\": "...)
		b = tensor.AppendString(b, s.Name)
		b = append(b, `, "size": `...)
		b = tensor.AppendJSON(b, s.Size())
		b = append(b, `, "format": `...)
		b = tensor.AppendString(b, s.Format)
		b = append(b, '}')
	}
	return append(b, "],\n  \"tensors\": [\n"...)
}

func (c *Checkpoint) appendTail(b []byte) []byte {
	b = append(b, "  ],\n  \"warnings\": ["...)
	for i, w := range c.Warnings {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = tensor.AppendString(b, strings.ToValidUTF8(w, "\ufffd"))
	}
	return append(b, "]}\n"...)
}
