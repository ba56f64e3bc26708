//go:build linux

package fs

import (
	"sync/atomic"
	"testing"

	"weightfs/format"
)

// countedDir counts its listings.
type countedDir struct {
	manyDir
	lists *atomic.Int32
}

func (d countedDir) List() format.Listing {
	d.lists.Add(1)
	return d.manyDir.List()
}

// A second walk makes no request: neither the listing, which the kernel has, nor an opendir.
func TestSecondWalkAsksNothing(t *testing.T) {
	var lists atomic.Int32
	_, mnt := mount(t, dir("d", countedDir{manyDir{dir(), 100}, &lists}), Options{})
	c := newClient(t)
	want := c.must("list", mnt+"/d")
	first := lists.Load()
	if got := c.must("list", mnt+"/d"); got != want {
		t.Errorf("%q, then %q", want, got)
	}
	if first == 0 || lists.Load() != first {
		t.Errorf("%d listings, then %d", first, lists.Load())
	}
}
