package safetensors

import (
	"bytes"
	"fmt"
	"testing"

	"weightfs/format/tensor"
)

// BenchmarkParse reads the header of a mixture of experts: 200,000 tensors with names of 65 bytes.
func BenchmarkParse(b *testing.B) {
	var tensors []tensor.Info
	for i := range 200_000 {
		name := fmt.Sprintf("model.language_model.layers.%d.mlp.experts.%d.%s", i/1536, i/6%256,
			[]string{"gate_proj.weight", "up_proj.weight", "down_proj.weight", "gate_proj.scales", "up_proj.scales", "down_proj.scales"}[i%6])
		tensors = append(tensors, tensor.Info{Name: name, DType: tensor.F8_E4M3, Shape: []uint64{2, 4}, Extent: tensor.Extent{Off: int64(i) * 8, Len: 8}})
	}
	f := file(render(tensors), 8*len(tensors))
	b.SetBytes(int64(len(f) - 8*len(tensors)))
	b.ReportAllocs()
	for b.Loop() {
		if h, err := Parse(bytes.NewReader(f), int64(len(f))); err != nil || len(h.Tensors) != len(tensors) {
			b.Fatal(err)
		}
	}
}
