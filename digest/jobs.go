package digest

import (
	"runtime"
	"sync"
)

// jobs bounds how many tensors of one disk are summed at once, however many readers ask, and so the
// memory. What waits for a disk that does not answer holds up nobody who reads from another.
var jobs sync.Map // a channel for each device number

// begin waits for its turn.
func begin(device uint64) (end func()) {
	c, _ := jobs.LoadOrStore(device, make(chan struct{}, runtime.GOMAXPROCS(0)))
	slots := c.(chan struct{})
	slots <- struct{}{}
	return func() { <-slots }
}
