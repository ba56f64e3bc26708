package transfer

import (
	"errors"
	"os"
	"syscall"
)

// syncPath brings a file to the disk, which Windows does for those who may write to it. A directory
// needs none of it there.
func syncPath(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, syscall.EISDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
