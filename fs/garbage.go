//go:build linux

package fs

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// mostGarbage is how much is left to the collector at most. Go lets as much garbage come together as
// there is in use, and of what it takes to be in use most may be go-fuse's buffers (see giveBack).
const mostGarbage = 64 << 20

// boundGarbage sets the collector's goal anew after each collection.
var boundGarbage = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		afterCollection()
	}
})

func afterCollection() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	const usual, least = 100, 5 // percent of what is in use
	percent := mostGarbage * 100 / max(live[0].Value.Uint64(), 1)
	debug.SetGCPercent(int(min(max(percent, least), usual)))
	runtime.AddCleanup(&struct{ _ *int }{}, func(struct{}) { afterCollection() }, struct{}{})
}
