//go:build linux

package fs

import (
	"syscall"
	"time"

	"weightfs/format"
)

// An Observer is told of what readers do. Its methods are called by many readers at once.
type Observer interface {
	// Opened is called after each open(2) of f.
	Opened(f format.File, errno syscall.Errno)
	// Closed is called some time after a file that was opened is closed for the last time, and not of
	// one that is closed as the mount ends.
	Closed(f format.File)
	// Read is called after each READ, when the kernel has copied the n bytes of its answer.
	Read(f format.File, n int, took time.Duration, errno syscall.Errno)
}
