//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
)

const stays = "It stays mounted."

func quickstart(t *testing.T, directories string) clone {
	t.Helper()
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no FUSE here: ", err)
	}
	fuse.Close()
	c := newClone(t)
	t.Cleanup(func() { c.run("weightfs umount --lazy " + directories) })
	return c
}

// prints runs a command and wants texts in what it prints.
func (c clone) prints(t *testing.T, command string, texts ...string) {
	t.Helper()
	got := c.run(command)
	for _, text := range texts {
		if !strings.Contains(got, text) {
			t.Errorf("%s prints no %q:\n%s", command, text, got)
		}
	}
	if strings.Contains(got, "No such file") || strings.Contains(got, "no such tensor") {
		t.Errorf("%s looks for what is not there:\n%s", command, got)
	}
}

// TestQuickstartOddSources: tensors whose names are no file names, and a directory of many.
func TestQuickstartOddSources(t *testing.T) {
	c := quickstart(t, "one many")
	c.prints(t, "scripts/quickstart.sh testdata/numpy/hand/slash-names.npz one", "weightfs show testdata/", stays)
	c.prints(t, "scripts/quickstart.sh testdata/torch many", "$ ls many/1.13/", "weightfs show /", stays)
}

// TestQuickstartTwice: what is mounted is not taken for another checkpoint.
func TestQuickstartTwice(t *testing.T) {
	c := quickstart(t, "mnt")
	c.prints(t, "scripts/quickstart.sh testdata/sample mnt", stays)
	c.prints(t, "scripts/quickstart.sh testdata/sample mnt", "mounted already", stays)
	c.prints(t, "scripts/quickstart.sh testdata/sample.gguf mnt", "testdata/sample is mounted there", "[exit status 16]")
}

// TestQuickstartMistyped: nothing is left behind.
func TestQuickstartMistyped(t *testing.T) {
	c := quickstart(t, "mnt")
	if got := c.run("scripts/quickstart.sh testdata/simple mnt"); !strings.Contains(got, "[exit status 11]") {
		t.Error(got)
	}
	if _, err := os.Lstat(c.dir + "/mnt"); err == nil {
		t.Error("the directory is left")
	}
	c.prints(t, "scripts/quickstart.sh --help && echo done", "quickstart.sh [CHECKPOINT [MOUNTPOINT]]", "done")
}
