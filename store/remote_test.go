package store

import (
	"errors"
	"strings"
	"testing"
)

func TestAnAddressIsNoPath(t *testing.T) {
	env := Env{Getenv: func(string) string { return "" }, Home: t.TempDir()}
	for source, want := range map[string]string{
		"s3://bucket/x":                         "downloads nothing (download it first, as with aws s3 cp)",
		"gs://bucket/x":                         "as with gcloud storage cp",
		"https://example.org/m.safetensors":     "as with curl -LO",
		"HTTPS://example.org/m.safetensors":     "as with curl -LO",
		"oci://registry/x":                      "downloads nothing (download it first)",
		"file:///models/a%20b":                  "name it as /models/a b",
		"hf:acme/x":                             "hf download acme/x",
		"hf:acme/x@main":                        "hf download acme/x",
		"hf://acme/x":                           "hf download acme/x",
		"https://huggingface.co/acme/x":         "hf download acme/x",
		"https://huggingface.co/datasets/a/b":   "of the hub only models are read",
		"nowhere/models/s3:x/model.safetensors": "no such file or directory",
	} {
		_, err := Resolve(source, env)
		if !errors.Is(err, ErrNotFound) || !strings.HasPrefix(err.Error(), source+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
		if word := strings.Contains(source, ":") && !strings.HasPrefix(source, "nowhere"); HasPrefix(source) != word {
			t.Errorf("%s has a prefix: %t", source, !word)
		}
	}
}
