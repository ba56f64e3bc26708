//go:build !linux

package format

import (
	"errors"
	"os"
)

// CopyTo is for kernels that copy from file to file.
func (s *Shard) CopyTo(*os.File, int64, int64, int64) error { return errors.ErrUnsupported }
