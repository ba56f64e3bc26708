package format

import (
	"fmt"
	"io"

	"weightfs/format/tensor"
)

// Content is the bytes of a file as consecutive segments.
type Content interface {
	Size() int64
	// Segment gives the segment that holds offset off (0 <= off < Size) and the offset in the file
	// at which it begins. No segment of a Content is empty.
	Segment(off int64) (seg Segment, start int64)
}

// Spanning is Content in which several tensors have a place.
type Spanning interface {
	Content
	// TensorAt names the tensor at an offset, empty where there is none.
	TensorAt(off int64) string
}

// A Segment is exactly one of: literal bytes, a range of a shard, or what a producer makes.
type Segment struct {
	Len    int64
	Data   []byte      // literal
	Shard  *Shard      // with Off: Len bytes of that file
	Off    int64       // in Shard
	Reader io.ReaderAt // a producer of Len bytes, in bounded memory, for many readers at once
}

// Literal is a segment of bytes in memory.
func Literal(b []byte) Segment { return Segment{Len: int64(len(b)), Data: b} }

// Range is a segment of n bytes at off in a shard.
func Range(s *Shard, off, n int64) Segment { return Segment{Len: n, Shard: s, Off: off} }

// Produced is a segment of n bytes that r makes on read.
func Produced(r io.ReaderAt, n int64) Segment { return Segment{Len: n, Reader: r} }

// ReadAt reads the segment's bytes from offset off within it, by pread. It fills p or says why not;
// off+len(p) must not exceed Len.
func (s Segment) ReadAt(p []byte, off int64) error {
	switch {
	case s.Shard != nil:
		return tensor.ReadFull(s.Shard, p, s.Off+off)
	case s.Reader != nil:
		return tensor.ReadFull(s.Reader, p, off)
	}
	copy(p, s.Data[off:])
	return nil
}

// segments is the Content of a few segments.
type segments []Segment

// newSegments leaves out what is empty.
func newSegments(list ...Segment) segments {
	out := make(segments, 0, len(list))
	for _, s := range list {
		if s.Len > 0 {
			out = append(out, s)
		}
	}
	return out
}

func (l segments) Size() int64 {
	var n int64
	for _, s := range l {
		n += s.Len
	}
	return n
}

func (l segments) Segment(off int64) (Segment, int64) {
	var start int64
	for _, s := range l {
		if off < start+s.Len {
			return s, start
		}
		start += s.Len
	}
	return Segment{}, start
}

// ContentReader reads a Content by pread, as `cat`, `cp` and every verb without a mount does.
type ContentReader struct{ Content }

// ReadAt implements io.ReaderAt.
func (c ContentReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("negative offset %d", off)
	}
	done, size := 0, c.Size()
	for done < len(p) && off < size {
		seg, start := c.Segment(off)
		n := min(int64(len(p)-done), start+seg.Len-off)
		if err := seg.ReadAt(p[done:done+int(n)], off-start); err != nil {
			return done, err
		}
		done += int(n)
		off += n
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// slice is n bytes at off of a segment.
func (s Segment) slice(off, n int64) Segment {
	switch {
	case s.Shard != nil:
		return Range(s.Shard, s.Off+off, n)
	case s.Reader != nil:
		return Produced(io.NewSectionReader(s.Reader, off, n), n)
	}
	return Literal(s.Data[off : off+n])
}

// Watched tells Read of every n bytes that are read.
type Watched struct {
	io.ReaderAt
	Read func(n int)
}

// ReadAt implements io.ReaderAt.
func (w Watched) ReadAt(p []byte, off int64) (int, error) {
	n, err := w.ReaderAt.ReadAt(p, off)
	w.Read(n)
	return n, err
}
