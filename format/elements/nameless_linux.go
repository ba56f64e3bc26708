package elements

import (
	"os"

	"golang.org/x/sys/unix"
)

// nameless opens a new file that no directory lists, so that nothing stays behind when the process
// ends in whatever way.
func nameless(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), dir), nil
	}
	return unlinked(dir) // some file systems know no O_TMPFILE; any other reason is met there again
}
