package decode

import (
	"cmp"
	"encoding/json"
	"errors"
)

// A Config is what a checkpoint's config.json says of its quantisation, where tensors alone do not
// tell. The zero Config says nothing.
type Config struct {
	Method string   // `quant_method`
	Format string   // `checkpoint_format`, or `format`
	Block  [2]int64 // `weight_block_size`: rows and columns that share a scale
}

type quantization struct {
	Method     string   `json:"quant_method"`
	Checkpoint string   `json:"checkpoint_format"`
	Format     string   `json:"format"`
	Bits       int      `json:"bits"`
	Block      [2]int64 `json:"weight_block_size"`
}

// ParseConfig reads a config.json, or AutoGPTQ's quantize_config.json, which lacks the method.
// What it does not understand says nothing.
func ParseConfig(data []byte) Config {
	var file struct {
		quantization
		Quantization *quantization `json:"quantization_config"`
		Text         struct {
			Quantization *quantization `json:"quantization_config"`
		} `json:"text_config"`
	}
	// A field of another type than expected is passed over; the others are still read.
	if err := json.Unmarshal(data, &file); err != nil && !isTypeError(err) {
		return Config{}
	}
	q := file.quantization
	switch {
	case file.Quantization != nil:
		q = *file.Quantization
	case file.Text.Quantization != nil:
		q = *file.Text.Quantization
	case q.Method == "" && q.Bits > 0:
		q.Method = "gptq"
	}
	return Config{q.Method, cmp.Or(q.Checkpoint, q.Format), q.Block}
}

func isTypeError(err error) bool {
	_, ok := errors.AsType[*json.UnmarshalTypeError](err)
	return ok
}
