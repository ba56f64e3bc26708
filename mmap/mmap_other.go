//go:build !unix

package mmap

import (
	"errors"
	"os"
)

// Nothing is mapped where no kernel copies from a map: without FUSE all bytes are read by pread.

func mapShared(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmap([]byte) error { return nil }

func advise([]byte, Advice) error { return errors.ErrUnsupported }
