//go:build !linux

package transfer

import (
	"errors"
	iofs "io/fs"
	"os"
)

// closeFirst: Windows renames and removes no file that is open.
const closeFirst = true

func lock(*os.File) error             { return nil }
func dropCache(*os.File)              {}
func syncFileSystem(string) error     { return errors.ErrUnsupported }
func fileNumber(iofs.FileInfo) string { return "" }
