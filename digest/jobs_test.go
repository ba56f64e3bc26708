package digest

import (
	"runtime"
	"testing"
	"time"
)

// Sums that wait for a disk which does not answer hold up nobody who reads from another.
func TestStalledDiskAlone(t *testing.T) {
	const stalled, other = 1 << 60, 1<<60 + 1
	for range runtime.GOMAXPROCS(0) {
		defer begin(stalled)()
	}
	done := make(chan struct{})
	go func() {
		begin(other)()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("a sum waits for another disk")
	}
}
