//go:build !windows

package transfer

import (
	"errors"
	"os"
)

// syncPath brings a file or a directory to the disk.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
