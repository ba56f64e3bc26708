// Package disk opens regular files: those that others may put in their place are not waited for. What is in
// a file is the caller's.
package disk

import (
	"fmt"
	"os"
	"syscall"
)

// Open opens a regular file for reading.
func Open(path string) (*os.File, os.FileInfo, error) {
	// O_NONBLOCK: opening a FIFO would wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file (%s)", path, st.Mode().Type())
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, st, nil
}
