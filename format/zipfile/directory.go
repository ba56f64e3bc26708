package zipfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"weightfs/format/tensor"
)

// directoryFault tells a file that was cut off from one whose directory is damaged.
func directoryFault(r io.ReaderAt, size int64, kind Kind, err error) error {
	fault := func(off int64, reason error, format string, a ...any) error {
		return &tensor.FormatError{Format: kind.Format, Off: off, Err: reason, Msg: fmt.Sprintf(format, a...)}
	}
	const endRecord, maxComment = 22, 1<<16 - 1
	tail := make([]byte, min(size, endRecord+maxComment))
	if _, rerr := r.ReadAt(tail, size-int64(len(tail))); rerr != nil && !errors.Is(rerr, io.EOF) {
		return fault(-1, tensor.ErrTruncated, "reading the end: %v", rerr)
	}
	end := tail[max(bytes.LastIndex(tail, []byte("PK\x05\x06")), 0):]
	whole := len(end) >= endRecord && len(end) >= endRecord+int(binary.LittleEndian.Uint16(end[endRecord-2:]))
	if whole && bytes.HasPrefix(end, []byte("PK\x05\x06")) {
		return fault(-1, tensor.ErrMalformed, "the zip archive's central directory is damaged: %v", err)
	}
	return fault(size, tensor.ErrTruncated, "truncated: the zip archive of %d bytes has no central directory at its end, which would tell how long it should be", size)
}
