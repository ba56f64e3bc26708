//go:build linux

package main

import (
	"os"
	"testing"
)

// TestExampleWithoutMount: one sentence, where Python would print where it stumbled.
func TestExampleWithoutMount(t *testing.T) {
	if os.Getenv("WEIGHTFS_PYTHON") == "" {
		t.Skip("no Python with the libraries is named in the environment")
	}
	c := newClone(t)
	want := "testdata: no checkpoint is mounted there (there is no tensors.json)\n[exit status 1]\n"
	if got := c.run(`"$WEIGHTFS_PYTHON" scripts/examples/numpy_load.py testdata`); got != want {
		t.Errorf("it prints\n%s", got)
	}
}
