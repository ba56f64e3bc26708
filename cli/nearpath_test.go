package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMistypedPathIsGuessed(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"llama/model.safetensors", "models/acme/tiny.gguf", ".hidden/x", "ab/x"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	abs, err := filepath.Abs("llama")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"lama": "llama", "./lama/": "llama", "lama/model.safetensor": "llama/model.safetensors", "Llama": "llama",
		"modles/acme/tiny.gguf": "models/acme/tiny.gguf", "models/acme/tiny": "models/acme/tiny.gguf",
		filepath.Dir(abs) + "/lama": abs,
		"zebra":                     "", "a": "", "hidden": "", "acme/tiny": "", "llama/x/y": "", "llama": "", "": "",
	} {
		if want != "" {
			want = `did you mean "` + want + `"?`
		}
		if got := pathMeant(path); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
}
