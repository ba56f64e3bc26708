package cli

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// A fixtureTensor holds the numbers 0, 1, 2 … as F32.
type fixtureTensor struct {
	name  string
	shape []int
}

// safetensorsFile is a safetensors file of tensors of floats.
func safetensorsFile(tensors ...fixtureTensor) []byte {
	var entries []string
	var data []byte
	for _, t := range tensors {
		begin, n := len(data), 1
		for _, d := range t.shape {
			n *= d
		}
		for i := range n {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i)))
		}
		shape, _ := json.Marshal(t.shape)
		entries = append(entries, fmt.Sprintf(`%q:{"dtype":"F32","shape":%s,"data_offsets":[%d,%d]}`, t.name, shape, begin, len(data)))
	}
	header := "{" + strings.Join(entries, ",") + "}"
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), data...)
}

// writeFixtures makes, in a script's directory: model.safetensors with six tensors, sharded/ with the
// same in two files and an index, lacking/ of which eleven files out of twelve are missing
// and the index names twelve tensors that are not there, and the empty directory mnt.
func writeFixtures(dir string) error {
	weight := func(i int) fixtureTensor {
		return fixtureTensor{fmt.Sprintf("model.layers.%d.self_attn.q_proj.weight", i), []int{4, 8}}
	}
	embed, norm := fixtureTensor{"model.embed_tokens.weight", []int{16, 8}}, fixtureTensor{"model.norm.weight", []int{8}}
	experts := fixtureTensor{"model.experts.weight", []int{3, 2, 4}}
	first, second := "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
	index, err := json.Marshal(map[string]any{"metadata": map[string]any{}, "weight_map": map[string]string{
		embed.name: first, weight(0).name: first, weight(1).name: first,
		weight(10).name: second, norm.name: second, experts.name: second,
	}})
	if err != nil {
		return err
	}
	lacking := map[string]string{}
	for i := range 12 {
		lacking[fmt.Sprintf("layers.%d.weight", i)] = fmt.Sprintf("model-%05d-of-00012.safetensors", i+1)
		lacking[fmt.Sprintf("ghost.%d", i)] = "model-00001-of-00012.safetensors"
	}
	lackingIndex, err := json.Marshal(map[string]any{"weight_map": lacking})
	if err != nil {
		return err
	}
	for _, d := range []string{"mnt", "sharded", "lacking"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	for name, content := range map[string][]byte{
		"model.safetensors":                        safetensorsFile(embed, weight(0), weight(1), weight(10), norm, experts),
		"sharded/" + first:                         safetensorsFile(embed, weight(0), weight(1)),
		"sharded/" + second:                        safetensorsFile(weight(10), norm, experts),
		"sharded/model.safetensors.index.json":     index,
		"lacking/model-00001-of-00012.safetensors": safetensorsFile(fixtureTensor{"layers.0.weight", []int{2}}),
		"lacking/model.safetensors.index.json":     lackingIndex,
		"sharded/config.json":                      []byte(`{"model_type": "llama"}` + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
