package tensor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

func cursorOf(b []byte) *Cursor { return NewCursor(bytes.NewReader(b), int64(len(b)), "test") }

func TestCursorReadsFrontToBack(t *testing.T) {
	b := []byte{1, 2, 3, 4, 5, 6, 7}
	b = binary.LittleEndian.AppendUint64(b, 0x3ff0000000000000)
	c := cursorOf(append(b, "text, and more"...))
	got := []any{c.U8("a"), c.U16("b")}
	c.SetOrder(binary.BigEndian)
	got = append(got, c.U32("c"))
	c.SetOrder(binary.LittleEndian)
	got = append(got, c.F64("d"), c.Str(4, 4, "e"))
	c.Skip(2, "f")
	got = append(got, string(c.Bytes(3, 10, "g")), c.Off(), c.Remaining(), c.Err())
	want := []any{uint8(1), uint16(0x0302), uint32(0x04050607), 1.0, "text", "and", int64(24), int64(5), error(nil)}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("value %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// The first fault stays, later reads give zero, and nothing sizes anything by what the file cannot hold.
func TestCursorFaults(t *testing.T) {
	for name, test := range map[string]struct {
		read   func(c *Cursor)
		off    int64
		reason error
	}{
		"number":      {func(c *Cursor) { c.U64("n") }, 2, ErrTruncated},
		"string":      {func(c *Cursor) { c.Str(7, 100, "s") }, 2, ErrTruncated},
		"long string": {func(c *Cursor) { c.Str(1<<63, 100, "s") }, 2, ErrTruncated},
		"limit":       {func(c *Cursor) { c.Bytes(6, 5, "s") }, 2, ErrTooLarge},
		"skip":        {func(c *Cursor) { c.Skip(1<<64-1, "s") }, 2, ErrTruncated},
		"count":       {func(c *Cursor) { c.Count(1<<61, 8, "things") }, 2, ErrTruncated},
		"count of some": {func(c *Cursor) {
			if n := c.Count(3, 2, "things"); n != 3 {
				c.Fail(0, ErrUnsafe, "%d things", n)
			}
			c.Count(4, 2, "things")
		}, 2, ErrTruncated},
	} {
		c := cursorOf(make([]byte, 8))
		c.U16("before")
		test.read(c)
		fault, ok := errors.AsType[*FormatError](c.Err())
		if !ok || fault.Off != test.off || fault.Format != "test" || !errors.Is(fault, test.reason) {
			t.Errorf("%s: %v", name, c.Err())
			continue
		}
		c.Fail(7, ErrUnsafe, "another")
		if n := c.U8("after"); n != 0 || c.Err() != error(fault) || c.Count(1, 1, "after") != 0 || c.Str(1, 1, "after") != "" || c.Bytes(1, 1, "after") != nil {
			t.Errorf("%s: reads on, and then: %v", name, c.Err())
		}
	}
}

// badDisk reads nothing from an offset on.
type badDisk struct {
	*bytes.Reader
	from int64
}

var errDisk = errors.New("no such sector")

func (d badDisk) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > d.from {
		return 0, errDisk
	}
	return d.Reader.ReadAt(p, off)
}

func TestCursorKeepsTheReadersError(t *testing.T) {
	b := make([]byte, 3*cursorBuffer)
	c := NewCursor(badDisk{bytes.NewReader(b), cursorBuffer}, int64(len(b)), "test")
	c.U8("first")
	c.Skip(cursorBuffer, "to the bad sector")
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	c.U32("n")
	if fault, ok := errors.AsType[*FormatError](c.Err()); !ok || !errors.Is(fault, errDisk) || fault.Off != cursorBuffer+1 {
		t.Errorf("%v", c.Err())
	}
	// The file is shorter than was said.
	c = NewCursor(bytes.NewReader(b[:4]), 8, "test")
	if c.U64("n"); !errors.Is(c.Err(), ErrTruncated) {
		t.Errorf("%v", c.Err())
	}
}

func TestReadFull(t *testing.T) {
	src := bytes.NewReader([]byte("abc"))
	for _, test := range []struct {
		off  int64
		n    int
		want error
	}{{0, 3, nil}, {1, 2, nil}, {1, 3, io.ErrUnexpectedEOF}, {3, 1, io.ErrUnexpectedEOF}, {9, 1, io.ErrUnexpectedEOF}, {3, 0, nil}} {
		if err := ReadFull(src, make([]byte, test.n), test.off); err != test.want {
			t.Errorf("%d bytes at %d: %v, want %v", test.n, test.off, err, test.want)
		}
	}
	if err := ReadFull(badDisk{src, 1}, make([]byte, 3), 0); err != errDisk {
		t.Errorf("%v", err)
	}
}
