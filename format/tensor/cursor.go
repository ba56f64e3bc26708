package tensor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// A Cursor reads a container's header front to back through a small buffer, with pread and never
// through a map. Its first fault stays: later reads give zero, so a parser checks Err once a record.
// Every length is compared with what remains of the file before it sizes anything.
type Cursor struct {
	r      io.ReaderAt
	size   int64
	format string
	order  binary.ByteOrder
	off    int64 // of the next byte
	buf    []byte
	bufOff int64 // file offset of buf[0]
	err    *FormatError
}

const cursorBuffer = 64 << 10

// NewCursor starts at offset 0 of a file of size bytes, little-endian.
func NewCursor(r io.ReaderAt, size int64, format string) *Cursor {
	return &Cursor{r: r, size: size, format: format, order: binary.LittleEndian}
}

// SetOrder sets the byte order of the reads that follow.
func (c *Cursor) SetOrder(order binary.ByteOrder) { c.order = order }

// Off is the offset of the next byte.
func (c *Cursor) Off() int64 { return c.off }

// Remaining is the number of bytes from Off to the end of the file.
func (c *Cursor) Remaining() int64 { return c.size - c.off }

// Err is the first fault, nil while there is none.
func (c *Cursor) Err() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// Fail records a fault at offset off, unless there is one already.
func (c *Cursor) Fail(off int64, reason error, format string, a ...any) {
	if c.err == nil {
		c.err = &FormatError{Format: c.format, Off: off, Msg: fmt.Sprintf(format, a...), Err: reason}
	}
}

// take returns the next n bytes, valid until the next call; nil after a fault. what names them.
func (c *Cursor) take(n int64, what string) []byte {
	if c.err != nil {
		return nil
	}
	if n < 0 || n > c.Remaining() {
		c.Fail(c.off, ErrTruncated, "truncated: %s of %d bytes, but only %d remain", what, n, c.Remaining())
		return nil
	}
	lo := c.off - c.bufOff
	if lo < 0 || lo+n > int64(len(c.buf)) {
		if !c.fill(max(n, min(cursorBuffer, c.Remaining()))) {
			return nil
		}
		lo = 0
	}
	c.off += n
	return c.buf[lo : lo+n]
}

func (c *Cursor) fill(n int64) bool {
	if int64(cap(c.buf)) < n {
		c.buf = make([]byte, n)
	}
	c.buf, c.bufOff = c.buf[:n], c.off
	got, err := c.r.ReadAt(c.buf, c.off)
	if int64(got) == n {
		return true
	}
	c.buf = c.buf[:0]
	if err == nil || errors.Is(err, io.EOF) {
		err = ErrTruncated
	}
	c.Fail(c.off+int64(got), err, "reading %d bytes: %v", n, err)
	return false
}

// allow compares n with what remains and then with the limit.
func (c *Cursor) allow(n uint64, limit int64, what string) bool {
	if c.err == nil && n > uint64(max(c.Remaining(), 0)) {
		c.Fail(c.off, ErrTruncated, "truncated: %s of %d bytes, but only %d remain", what, n, c.Remaining())
	}
	if c.err == nil && n > uint64(limit) {
		c.Fail(c.off, ErrTooLarge, "%s of %d bytes exceeds the limit of %d", what, n, limit)
	}
	return c.err == nil
}

// Str is Bytes as a string, with one copy where the buffer holds it.
func (c *Cursor) Str(n uint64, limit int64, what string) string {
	if n > cursorBuffer {
		return string(c.Bytes(n, limit, what))
	}
	if !c.allow(n, limit, what) {
		return ""
	}
	return string(c.take(int64(n), what))
}

// Bytes copies the next n bytes; at most limit, which bounds the allocation.
func (c *Cursor) Bytes(n uint64, limit int64, what string) []byte {
	if !c.allow(n, limit, what) {
		return nil
	}
	if n <= cursorBuffer {
		return append([]byte(nil), c.take(int64(n), what)...)
	}
	p := make([]byte, n)
	got, err := c.r.ReadAt(p, c.off)
	if got != len(p) {
		c.Fail(c.off+int64(got), ErrTruncated, "%s of %d bytes: %v", what, n, err)
		return nil
	}
	c.off += int64(n)
	return p
}

// Skip passes over n bytes.
func (c *Cursor) Skip(n uint64, what string) {
	if c.err != nil {
		return
	}
	if n > uint64(max(c.Remaining(), 0)) {
		c.Fail(c.off, ErrTruncated, "truncated: %s of %d bytes, but only %d remain", what, n, c.Remaining())
		return
	}
	c.off += int64(n)
}

// U8 reads a byte.
func (c *Cursor) U8(what string) uint8 {
	if b := c.take(1, what); b != nil {
		return b[0]
	}
	return 0
}

// U16 reads two bytes.
func (c *Cursor) U16(what string) uint16 {
	if b := c.take(2, what); b != nil {
		return c.order.Uint16(b)
	}
	return 0
}

// U32 reads four bytes.
func (c *Cursor) U32(what string) uint32 {
	if b := c.take(4, what); b != nil {
		return c.order.Uint32(b)
	}
	return 0
}

// U64 reads eight bytes.
func (c *Cursor) U64(what string) uint64 {
	if b := c.take(8, what); b != nil {
		return c.order.Uint64(b)
	}
	return 0
}

// F32 reads a float of four bytes.
func (c *Cursor) F32(what string) float32 { return math.Float32frombits(c.U32(what)) }

// F64 reads a float of eight bytes.
func (c *Cursor) F64(what string) float64 { return math.Float64frombits(c.U64(what)) }

// Count checks a number of elements that take at least each bytes apiece against what remains, so
// that it can size a slice; 0 after a fault.
func (c *Cursor) Count(n uint64, each int64, what string) int {
	if c.err != nil {
		return 0
	}
	if n > uint64(max(c.Remaining(), 0)/max(each, 1)) {
		c.Fail(c.off, ErrTruncated, "truncated: %d %s cannot fit in the %d bytes that remain", n, what, c.Remaining())
		return 0
	}
	return int(n)
}
