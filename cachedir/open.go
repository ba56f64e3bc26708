package cachedir

import (
	"fmt"
	"os"
	"syscall"
)

// Open opens a file of the cache to be read. Others may write to a directory that the environment names:
// a FIFO in it would wait for its writer.
func Open(path string) (f *os.File, size int64, err error) {
	if f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file (%v)", path, st.Mode())
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}
