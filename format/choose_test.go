package format

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weightfs/format/names"
)

// ggufOf is a GGUF file of one float, with an architecture.
func ggufOf(architecture, tensor string) []byte {
	text := func(b []byte, s string) []byte {
		return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
	}
	u32, u64 := binary.LittleEndian.AppendUint32, binary.LittleEndian.AppendUint64
	b := u64(u64(u32([]byte("GGUF"), 3), 1), 1)
	b = text(u32(text(b, "general.architecture"), 8), architecture)
	b = u64(u32(u64(u32(text(b, tensor), 1), 1), 0), 0)
	b = append(b, make([]byte, (32-len(b)%32)%32)...)
	return append(b, make([]byte, 32)...)
}

func TestMapOfLlamaFitsGemmaByItsMetadata(t *testing.T) {
	rules, err := names.LoadRules("llama.cpp")
	if err != nil {
		t.Fatal(err)
	}
	for architecture, want := range map[string]string{
		"llama": "model.layers.0.post_attention_layernorm.weight", "gemma3": "model.layers.0.pre_feedforward_layernorm.weight",
	} {
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := os.WriteFile(path, ggufOf(architecture, "blk.0.ffn_norm.weight"), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := Open(path, Options{Map: rules})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got := c.Tensor(0).Name; got != want {
			t.Errorf("%s: %s, want %s", architecture, got, want)
		}
	}
}

func TestReadmeNamesOnlyTheViewsThatAreThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	writeSafetensors(t, path, nil, testTensor{"a.b", "F32", []uint64{2}, pattern(8, 1)})
	for _, views := range [][]string{nil, {"npy"}, {"raw"}, {"f32", "stats"}} {
		c, err := Open(path, Options{Views: views})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		text := string(c.readme())
		for _, view := range Views {
			if got := strings.Contains(text, view+"/"); got != c.shows(view) {
				t.Errorf("views %v: %s/ named: %t", views, view, got)
			}
		}
		if strings.Contains(text, "SHA256SUMS") != c.shows("raw") || !strings.Contains(text, "1 tensor,") {
			t.Errorf("views %v: %s", views, text)
		}
	}
}
