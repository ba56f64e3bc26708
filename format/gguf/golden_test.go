package gguf

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weightfs/format/tensor"
)

// A golden file is what gguf-py says of the file beside it (testdata/gguf/golden.py).
type golden struct {
	Metadata map[string]any `json:"metadata"`
	Tensors  []struct {
		Name   string   `json:"name"`
		ID     uint64   `json:"id"`
		Type   string   `json:"type"`
		NE     []uint64 `json:"ne"`
		Offset int64    `json:"offset"`
		NBytes int64    `json:"nbytes"`
	} `json:"tensors"`
}

func TestGolden(t *testing.T) {
	for _, name := range []string{"golden-le", "golden-be"} {
		t.Run(name, func(t *testing.T) {
			file := readFile(t, name+".gguf")
			h, err := Parse(bytes.NewReader(file), int64(len(file)))
			if err != nil {
				t.Fatal(err)
			}
			want := readJSON[golden](t, name+".json")
			checkMetadata(t, h, want)
			if len(h.Tensors) != len(want.Tensors) {
				t.Fatalf("%d tensors, want %d", len(h.Tensors), len(want.Tensors))
			}
			for i, w := range want.Tensors {
				got := h.Tensors[i]
				if got.Name != w.Name || got.DType.String() != w.Type || got.Bytes != w.NBytes || got.Extent != (tensor.Extent{Off: w.Offset, Len: w.NBytes}) {
					t.Errorf("got %+v, want %+v", got, w)
				}
				ggmlType := tensor.Object{{Key: "id", Value: w.ID}, {Key: "name", Value: w.Type}}
				if diff := cmp.Diff([]any{w.NE, ggmlType}, []any{got.Extra.Get("ne"), got.Extra.Get("ggml_type")}); diff != "" {
					t.Errorf("%s: %s", w.Name, diff)
				}
			}
		})
	}
}

func checkMetadata(t *testing.T, h *tensor.Header, want golden) {
	if len(h.Meta) != len(want.Metadata) {
		t.Errorf("%d keys, want %d", len(h.Meta), len(want.Metadata))
	}
	for _, kv := range h.Meta {
		got, want := rendered(t, kv.Value), want.Metadata[kv.Key]
		if strings.HasPrefix(kv.Key, "f32") || strings.HasPrefix(kv.Key, "array.f32") {
			got, want = narrowed(got), narrowed(want)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", kv.Key, diff)
		}
	}
}

// narrowed makes numbers comparable that were written as the shortest decimal of a float32 and as
// its exact value.
func narrowed(v any) any {
	switch v := v.(type) {
	case float64:
		return float32(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = narrowed(v[i])
		}
		return out
	}
	return v
}

// JSON numbers lose digits above 2^53 when they are read as floats, but not when they are written.
func TestLargeIntegersKeepTheirDigits(t *testing.T) {
	h, err := v3(0, 2).key("u", typeU64).u64(1<<64-1).key("i", typeI64).u64(1 << 63).parse()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"u": 18446744073709551615, "i": -9223372036854775808}`
	if got := string(tensor.AppendJSON(nil, h.Meta)); got != want || !json.Valid([]byte(got)) {
		t.Errorf("got %s, want %s", got, want)
	}
}
