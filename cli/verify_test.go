package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weightfs/format/set"
	"weightfs/format/tensor"
	"weightfs/store"
)

// A shard that vanished between the look for missing ones and the opening left a warning and `no faults`.
func TestVerifyOpensNoLessThanWasFound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sample")
	if err := os.CopyFS(dir, os.DirFS("../testdata/sample")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "model-00002-of-00003.safetensors")); err != nil {
		t.Fatal(err)
	}
	v := &verifying{app: &app{}}
	c, err := v.open(store.Place{Path: dir}, false)
	if _, ok := errors.AsType[*set.IncompleteError](err); !ok {
		t.Errorf("opened: %v", err)
	}
	if err == nil {
		c.Close()
	}
}

// A fault of a shard that changed while it was verified named the file twice.
func TestVerifyNamesTheFileOnce(t *testing.T) {
	sample, err := os.ReadFile("../testdata/sample.gguf")
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]*verifying{"ends": {}, "hash": {hash: true}, "nan": {nan: true}} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			path := filepath.Join(t.TempDir(), "model.gguf")
			if err := os.WriteFile(path, sample, 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := v.open(store.Place{Path: path}, false)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := os.Truncate(path, int64(len(sample)-1)); err != nil {
				t.Fatal(err)
			}
			v.app = &app{json: true, quiet: true}
			r := &report{source: path}
			v.read(r, c, filepath.Dir(path), path)
			if len(r.faults) == 0 {
				t.Error("no faults")
			}
			for _, f := range r.faults {
				if text := f.Error(); strings.Count(text, path) != 1 || strings.Count(text, "offset ") != 1 {
					t.Error(text)
				}
			}
		})
	}
}

// A tensor that cannot be unpacked was named twice.
func TestVerifyNamesTheTensorOnce(t *testing.T) {
	file, err := os.ReadFile("../testdata/numpy/compressed.npz")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	path := filepath.Join(t.TempDir(), "damaged.npz")
	verify := func() []*tensor.FormatError {
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		v := &verifying{app: &app{json: true, quiet: true}, hash: true}
		c, err := v.open(store.Place{Path: path}, false)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		i, ok := c.ByName("big")
		if !ok {
			t.Fatal("there is no tensor big")
		}
		at := c.Tensor(i).Extent
		copy(file[at.Off+at.Len/2:], "\xff\xff\xff\xff\xff\xff\xff\xff") // for the next time
		r := &report{source: path}
		v.read(r, c, filepath.Dir(path), path)
		return r.faults
	}
	if faults := verify(); len(faults) > 0 {
		t.Fatal(faults[0])
	}
	faults := verify()
	if len(faults) == 0 {
		t.Error("no faults")
	}
	for _, f := range faults {
		if text := f.Error(); strings.Count(text, "big") != 1 || strings.Count(text, path) != 1 {
			t.Error(text)
		}
	}
}
