package transfer

import (
	"fmt"
	iofs "io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// closeFirst: the lock is to be held until the file has its name.
const closeFirst = false

// lock keeps a second process away from a file, until it is closed.
func lock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// dropCache lets the next reads of a file come from the disk.
func dropCache(f *os.File) { unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }

// syncFileSystem flushes all of the file system that holds a directory.
func syncFileSystem(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// fileNumber tells a file from another one of the same path, size and time.
func fileNumber(st iofs.FileInfo) string {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(sys.Ino)
	}
	return ""
}
