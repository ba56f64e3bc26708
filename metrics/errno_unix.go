//go:build unix

package metrics

import (
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// errnoName is the name that a manual page gives an error: EIO, ESTALE.
func errnoName(errno syscall.Errno) string {
	if name := unix.ErrnoName(errno); name != "" {
		return name
	}
	return strconv.Itoa(int(errno))
}
