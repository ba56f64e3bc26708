//go:build linux

package fs

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A place is a mount point that is found again when a directory above it has been renamed, which a mount
// does not prevent.
type place struct {
	dir   string   // as it was at first; empty where it was not told
	above *os.File // the directory that holds it; nil where that could not be had
}

func placeOf(dir string) place {
	if dir == "" {
		return place{}
	}
	fd, err := unix.Open(filepath.Dir(dir), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return place{dir: dir}
	}
	return place{dir, os.NewFile(uintptr(fd), filepath.Dir(dir))}
}

// now is its path. Control keeps the descriptor while it is looked at: when it was closed meanwhile, its
// number could be another directory's.
func (p place) now() string {
	path := p.dir
	conn, err := p.above.SyscallConn()
	if err != nil {
		return path
	}
	conn.Control(func(fd uintptr) {
		if above, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil {
			path = filepath.Join(above, filepath.Base(p.dir))
		}
	})
	return path
}

func (p place) close() { p.above.Close() }
