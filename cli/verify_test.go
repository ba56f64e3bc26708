package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"weightfs/format/set"
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
