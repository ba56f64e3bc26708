package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weightfs/format"
	"weightfs/format/names"
)

func openTensors(t *testing.T, opt format.Options, tensors ...fixtureTensor) *format.Checkpoint {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := os.WriteFile(path, safetensorsFile(tensors...), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := format.Open(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestMistypedTensorIsGuessed(t *testing.T) {
	one := []int{1}
	c := openTensors(t, format.Options{}, fixtureTensor{"model.embed_tokens.weight", one}, fixtureTensor{"model.layers.0.input_norm.weight", one},
		fixtureTensor{"model.layers.0.q_proj.weight", one}, fixtureTensor{"model.norm.weight", one})
	for word, want := range map[string]string{
		"model.norm.weigth": "model.norm.weight", "norm.weight": "model.norm.weight", "model/norm.weight": "model.norm.weight",
		"Model.Norm.Weight": "model.norm.weight", "model.layer.0.q_proj.weight": "model.layers.0.q_proj.weight",
		"f32/model/norm.weight": "f32/model/norm.weight.npy", "raw/model/norm.weight.npy": "raw/model/norm.weight.raw",
		"/npy/model/norm.wieght.npy": "npy/model/norm.weight.npy", "rows/model/norm.weight": "model.norm.weight",
		"*q_pro*": "model.layers.0.q_proj.weight", "zebra": "", "": "", "*": "",
	} {
		if got, _ := nearest(c, word); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestOldNameIsGuessedByTheMap(t *testing.T) {
	rules, err := names.LoadRules(`s/^blk\.([0-9]+)\./model.layers.\1./`)
	if err != nil {
		t.Fatal(err)
	}
	c := openTensors(t, format.Options{Map: rules}, fixtureTensor{"blk.7.w", []int{1}})
	if got, _ := nearest(c, "blk.7.w"); got != "model.layers.7.w" {
		t.Errorf("%q", got)
	}
}

func TestGuessAmongManyTensorsIsQuick(t *testing.T) {
	var tensors []fixtureTensor
	for i := range 200_000 {
		tensors = append(tensors, fixtureTensor{fmt.Sprintf("model.layers.%d.experts.%d.down_proj.weight", i%100, i), []int{0}})
	}
	c := openTensors(t, format.Options{}, tensors...)
	begin := time.Now()
	nearest(c, "m0del.laxers.77.experts.91919.doxn_proj.weigth.of")
	if took := time.Since(begin); took > 2*time.Second { // 0.1 s on an idle machine
		t.Errorf("%v", took)
	} else {
		t.Log(took)
	}
}
