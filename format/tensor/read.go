package tensor

import (
	"errors"
	"io"
)

// ReadFull fills p from offset off of a source. What io.ReaderAt may leave out at the end of the source
// is a fault here: io.ErrUnexpectedEOF.
func ReadFull(src io.ReaderAt, p []byte, off int64) error {
	n, err := src.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
