//go:build linux

package fs

import (
	"errors"
	iofs "io/fs"
	"syscall"

	"weightfs/format"
)

// errnoOf is the one place where an error becomes what a reader sees.
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.Is(err, format.ErrStale):
		return syscall.ESTALE
	case errors.Is(err, format.ErrChanged):
		return syscall.EIO
	case errors.As(err, &errno) && errno != 0 && errno != syscall.ENOSYS:
		return errno // ENOSYS never: the kernel would not send that request again in this mount
	case errors.Is(err, iofs.ErrNotExist):
		return syscall.ENOENT
	}
	return syscall.EIO
}
