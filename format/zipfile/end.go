package zipfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"weightfs/format/tensor"
)

const (
	endLength     = 22
	endLength64   = 56
	locatorLength = 20
	entryLength   = 46 // without what varies
	maxComment    = math.MaxUint16
	endMark       = "PK\x05\x06"
	endMark64     = "PK\x06\x06"
	locatorMark   = "PK\x06\x07"
	entryMark     = "PK\x01\x02"
)

// An end is what the records at the end of a zip file say of its directory.
type end struct {
	at                  int64 // where the first of them begins
	count, size, offset uint64
}

// start is where the directory begins that ends where the records begin. offset says so too, but for what
// may stand in front of the archive.
func (e *end) start() int64 { return e.at - int64(e.size) }

// readEnd reads these records. Some readers believe the one for large files whenever it is there, others only
// where the other one leaves a number out, so that the two must agree.
func readEnd(r io.ReaderAt, size int64, kind Kind) (*end, error) {
	tail, at, err := findEnd(r, size)
	if err != nil {
		return nil, kind.fault(-1, tensor.ErrTruncated, "reading the end: %v", err)
	}
	if at < 0 || at+endLength+int(binary.LittleEndian.Uint16(tail[at+20:])) > len(tail) {
		return nil, kind.fault(size, tensor.ErrTruncated, "truncated: the zip archive of %d bytes has no central directory at its end, which would tell how long it should be", size)
	}
	front, record := tail[:at], tail[at:]
	e := &end{
		at:     size - int64(len(record)),
		count:  uint64(binary.LittleEndian.Uint16(record[10:])),
		size:   uint64(binary.LittleEndian.Uint32(record[12:])),
		offset: uint64(binary.LittleEndian.Uint32(record[16:])),
	}
	if len(front) >= locatorLength && bytes.HasPrefix(front[len(front)-locatorLength:], []byte(locatorMark)) {
		if err := e.enlarge(front, kind); err != nil {
			return nil, err
		}
	}
	if e.size > uint64(e.at) || e.offset > uint64(e.start()) {
		return nil, kind.fault(e.at, tensor.ErrMalformed, "the zip archive's central directory of %d bytes at offset %d does not end where its end record begins, at %d", e.size, e.offset, e.at)
	}
	return e, nil
}

// findEnd reads as much of the end as the records need, few bytes first, and finds the last one; -1 for none.
func findEnd(r io.ReaderAt, size int64) (tail []byte, at int, err error) {
	const large = locatorLength + endLength64
	for _, n := range []int64{1 << 10, maxComment + endLength + large} {
		tail = make([]byte, min(size, n))
		if n, err := r.ReadAt(tail, size-int64(len(tail))); n < len(tail) {
			return nil, -1, err
		}
		at = bytes.LastIndex(tail[:max(len(tail)-endLength+len(endMark), 0)], []byte(endMark))
		if at >= large {
			break
		}
	}
	return tail, at, nil
}

// enlarge takes the numbers of the record for large files, which ends in front with the locator that names it.
func (e *end) enlarge(front []byte, kind Kind) error {
	at := e.at - locatorLength - endLength64
	if len(front) < locatorLength+endLength64 {
		at = -1
	} else {
		front = front[len(front)-locatorLength-endLength64:]
	}
	locator := front[len(front)-locatorLength:]
	if at < 0 || !bytes.HasPrefix(front, []byte(endMark64)) || binary.LittleEndian.Uint64(locator[8:]) != uint64(at) {
		return kind.fault(e.at-locatorLength, tensor.ErrMalformed, "the zip archive's locator names offset %d, but its zip64 end record is not there and in front of it", binary.LittleEndian.Uint64(locator[8:]))
	}
	large := &end{
		at:     at,
		count:  binary.LittleEndian.Uint64(front[32:]),
		size:   binary.LittleEndian.Uint64(front[40:]),
		offset: binary.LittleEndian.Uint64(front[48:]),
	}
	if !same(e.count, large.count, math.MaxUint16) || !same(e.size, large.size, math.MaxUint32) || !same(e.offset, large.offset, math.MaxUint32) {
		return kind.fault(e.at, tensor.ErrMalformed, "the zip archive's end records disagree: %d entries in %d bytes at offset %d, or %d in %d at %d by zip64",
			e.count, e.size, e.offset, large.count, large.size, large.offset)
	}
	*e = *large
	return nil
}

// same tells whether a number is that of the record for large files, or left to it.
func same(small, large, left uint64) bool { return small == large || small == left }

// find looks where the directory begins. Where something stands in front of the archive, the offset must not
// name another one, which some readers take.
func (e *end) find(r io.ReaderAt, kind Kind) error {
	switch {
	case e.size > 0 && !isEntry(r, e.start()):
		return kind.fault(e.start(), tensor.ErrMalformed, "the zip archive's central directory is damaged, or does not end where the end record begins, at %d", e.at)
	case e.start() != int64(e.offset) && isEntry(r, int64(e.offset)):
		return kind.fault(int64(e.offset), tensor.ErrMalformed, "the zip archive's end record names a central directory that does not end where the record begins, at %d", e.at)
	}
	return nil
}

// compare holds the directory that was read against the end record.
func (e *end) compare(files []*zip.File, kind Kind) error {
	length := uint64(0)
	for _, f := range files {
		length += entryLength + uint64(len(f.Name)+len(f.Extra)+len(f.Comment))
	}
	if uint64(len(files)) != e.count || length != e.size {
		return kind.fault(e.at, tensor.ErrMalformed, "the zip archive's end record has %d entries in %d bytes, but its central directory %d in %d", e.count, e.size, len(files), length)
	}
	return nil
}

// isEntry tells whether an entry of a directory begins at off.
func isEntry(r io.ReaderAt, off int64) bool {
	mark := make([]byte, len(entryMark))
	n, _ := r.ReadAt(mark, off)
	return n == len(mark) && string(mark) == entryMark
}

func (k Kind) fault(off int64, reason error, format string, a ...any) error {
	return &tensor.FormatError{Format: k.Format, Off: off, Err: reason, Msg: fmt.Sprintf(format, a...)}
}
