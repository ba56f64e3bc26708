package format

import (
	"io"
	"sort"
)

// A rendering is a producer of text made of many pieces, rendered when they are read: tensors.json
// of a million tensors costs the length of every 64th piece, not its text.
type rendering struct {
	n     int
	piece func(b []byte, i int) []byte // appends piece i, always the same bytes
	marks []int64                      // the offset of every markEvery-th piece, and the end
}

const markEvery = 64

// newRendering renders each piece once, to learn its length.
func newRendering(n int, piece func(b []byte, i int) []byte) *rendering {
	r := &rendering{n: n, piece: piece, marks: make([]int64, 0, n/markEvery+2)}
	var off int64
	var b []byte
	for i := range n {
		if i%markEvery == 0 {
			r.marks = append(r.marks, off)
		}
		b = piece(b[:0], i)
		off += int64(len(b))
	}
	r.marks = append(r.marks, off)
	return r
}

// Size is the length of the whole text.
func (r *rendering) Size() int64 { return r.marks[len(r.marks)-1] }

// segment is the rendering as a segment of a file.
func (r *rendering) segment() Segment { return Produced(r, r.Size()) }

// ReadAt implements io.ReaderAt.
func (r *rendering) ReadAt(p []byte, off int64) (int, error) {
	if off >= r.Size() {
		return 0, io.EOF
	}
	mark := sort.Search(len(r.marks), func(i int) bool { return r.marks[i] > off }) - 1
	skip, done := off-r.marks[mark], 0
	var b []byte
	for i := mark * markEvery; i < r.n && done < len(p); i++ {
		b = r.piece(b[:0], i)
		if skip >= int64(len(b)) {
			skip -= int64(len(b))
			continue
		}
		done += copy(p[done:], b[skip:])
		skip = 0
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}
