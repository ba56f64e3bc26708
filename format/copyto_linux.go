package format

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// CopyTo has the kernel copy n bytes at off to offset at of dst: a file system that can shares them, a
// file server copies them on its side. It is errors.ErrUnsupported when the kernel will not, between
// these two files; the caller then reads and writes.
func (s *Shard) CopyTo(dst *os.File, at, off, n int64) error {
	for n > 0 {
		done, err := unix.CopyFileRange(int(s.file.Fd()), &off, int(dst.Fd()), &at, int(min(n, maxCopy)), 0)
		switch err {
		case nil:
		case unix.EINTR:
			continue
		case unix.ENOSPC, unix.EDQUOT, unix.EFBIG:
			return os.NewSyscallError("copy_file_range", err)
		default: // across file systems, of this kind of file, or a fault that reading will name
			return errors.ErrUnsupported
		}
		if done == 0 { // cut short, or a file system that copies nothing
			return errors.ErrUnsupported
		}
		n -= int64(done)
	}
	return s.Intact(off)
}

// maxCopy is below the limit of one call on every kernel.
const maxCopy = 1 << 30
