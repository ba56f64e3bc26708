//go:build unix

package mmap

import (
	"os"

	"golang.org/x/sys/unix"
)

func mapShared(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
}

func unmap(b []byte) error { return unix.Munmap(b) }

func advise(b []byte, a Advice) error {
	return unix.Madvise(b, [...]int{WillNeed: unix.MADV_WILLNEED, DontNeed: unix.MADV_DONTNEED}[a])
}
