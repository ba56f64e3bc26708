//go:build unix

package cachedir

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock marks a file as being written, until unlock and not just until it is closed. It is false where the
// file is another's to remove.
func lock(f *os.File) (unlock func(), ok bool) {
	none := func() {}
	held, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return none, true
	}
	unlock = func() { unix.Close(held) }
	err = unix.Flock(held, unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK || err == nil && !stands(f) {
		unlock()
		return none, false
	}
	return unlock, true // on a file system without locks no sweep gets one either
}

// removeAbandoned removes a file that no process has locked: its lock goes with its writer.
func removeAbandoned(path string) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && stands(f) {
		os.Remove(path)
	}
}

// stands tells whether a file is what its name leads to.
func stands(f *os.File) bool {
	now, err := os.Lstat(f.Name())
	if err != nil {
		return false
	}
	st, err := f.Stat()
	return err == nil && os.SameFile(st, now)
}
