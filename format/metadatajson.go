package format

import "weightfs/format/tensor"

// metadata.json: the containers' own key/value metadata, merged.

func (c *Checkpoint) renderMetadata() []byte {
	b := []byte("{")
	for i, kv := range c.Meta() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "\n  "...)
		b = tensor.AppendString(b, kv.Key)
		b = append(b, ": "...)
		b = tensor.AppendJSON(b, kv.Value)
	}
	if len(c.Meta()) > 0 {
		b = append(b, '\n')
	}
	return append(b, "}\n"...)
}
