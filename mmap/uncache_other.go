//go:build !linux

package mmap

import (
	"errors"
	"os"
)

// Uncache takes n bytes of f at off out of the kernel's cache, where the system can.
func Uncache(*os.File, int64, int64) error { return errors.ErrUnsupported }
