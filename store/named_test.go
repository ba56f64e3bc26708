package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNamedSum(t *testing.T) {
	sum := strings.Repeat("0123456789abcdef", 4)
	for name, named := range map[string]bool{
		sum:                                     true,
		"sha256-" + sum:                         true,
		"SHA256E-s123--" + sum + ".safetensors": true,
		"SHA256-s123--" + sum:                   true,
		sum[:40]:                                false, // a git blob
		strings.ToUpper(sum):                    false,
		sum + "0":                               false,
		"MD5E-s1--" + sum:                       false,
		"model.safetensors":                     false,
		"model-" + sum + ".safetensors":         false,
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(t.TempDir(), "model.safetensors")
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{path, link} {
			got, ok := NamedSum(p)
			if ok != named || named && fmt.Sprintf("%x", got) != sum {
				t.Errorf("%s: %x, %v", filepath.Base(path), got, ok)
			}
		}
	}
}
