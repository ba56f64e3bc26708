package decode

import "testing"

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       Config
	}{
		{"beside the model", `{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 64]}}`, Config{Method: "fp8", Block: [2]int64{128, 64}}},
		{"of the text part", `{"text_config": {"quantization_config": {"quant_method": "gptq", "checkpoint_format": "gptq_v2"}}}`, Config{Method: "gptq", Format: "gptq_v2"}},
		{"of AutoGPTQ, without a method", `{"bits": 4}`, Config{Method: "gptq"}},
		{"a field of another type", `{"quantization_config": {"bits": "four", "weight_block_size": {}, "quant_method": "awq"}}`, Config{Method: "awq"}},
		{"nothing of it", `{"hidden_size": 32}`, Config{}},
		{"no JSON", `{"quantization_config": {"quant_method": "fp8"}`, Config{}},
	} {
		if got := ParseConfig([]byte(test.text)); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}
