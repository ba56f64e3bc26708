//go:build linux

package fs

import (
	"errors"
	iofs "io/fs"
	"syscall"

	"weightfs/format"
	"weightfs/format/elements"
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
	case errors.Is(err, elements.ErrNoPlace): // what it says of permissions is not of the file that is read
		return syscall.EIO
	case errors.As(err, &errno) && errno != 0 && !misleading[errno]:
		return errno
	case errors.Is(err, iofs.ErrNotExist):
		return syscall.ENOENT
	}
	return syscall.EIO
}

// misleading are errors of what lies below that would be taken for our own.
var misleading = map[syscall.Errno]bool{
	syscall.ENOSYS:       true, // the kernel would not send that request again in this mount
	syscall.ENOTCONN:     true, // a FUSE file system below has died: readers would think this one has
	syscall.ECONNABORTED: true,
}
