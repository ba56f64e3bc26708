package mmap

import (
	"os"

	"golang.org/x/sys/unix"
)

// Uncache takes n bytes of f at off out of the kernel's cache, but for pages that somebody has mapped or
// written to.
func Uncache(f *os.File, off, n int64) error {
	return os.NewSyscallError("fadvise", unix.Fadvise(int(f.Fd()), off, n, unix.FADV_DONTNEED))
}
