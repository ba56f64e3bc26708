package zipfile

import (
	"cmp"
	"io"
)

// A window is the file with a small buffer: local headers of small entries lie close together. It
// remembers where the last read began, because zip.File keeps the offset of its header to itself
// and File.DataOffset reads there.
type window struct {
	r    io.ReaderAt
	last int64
	off  int64
	buf  []byte
}

const windowSize = 4 << 10

// ReadAt reads through the buffer.
func (w *window) ReadAt(p []byte, off int64) (int, error) {
	w.last = off
	if len(p) >= windowSize || off < 0 {
		return w.r.ReadAt(p, off)
	}
	if off < w.off || off+int64(len(p)) > w.off+int64(len(w.buf)) {
		if w.buf == nil {
			w.buf = make([]byte, windowSize)
		}
		n, err := w.r.ReadAt(w.buf[:windowSize], off)
		w.off, w.buf = off, w.buf[:n]
		if n < len(p) {
			return copy(p, w.buf), cmp.Or(err, io.ErrUnexpectedEOF)
		}
	}
	return copy(p, w.buf[off-w.off:]), nil
}
