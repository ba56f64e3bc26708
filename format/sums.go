package format

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"io"
	"runtime"
	"slices"
	"sort"
	"strings"

	"golang.org/x/sync/errgroup"

	"weightfs/digest"
)

// sums is SHA256SUMS: a line for each file of raw/, for `sha256sum -c` at the top of the tree. The
// length of a line does not depend on the hash, so the size is known before anything is read, and a
// read computes only the lines that it touches.
type sums struct {
	c     *Checkpoint
	order []uint32
	marks []int64 // the offset of every markEvery-th line, and the end
}

const hexLen = 64

func (c *Checkpoint) newSums() *sums {
	s := &sums{c: c, order: make([]uint32, 0, c.Len())}
	var off int64
	var line []byte
	c.index.Below(0, func(t uint32) bool {
		if len(s.order)%markEvery == 0 {
			s.marks = append(s.marks, off)
		}
		s.order = append(s.order, t)
		line, _ = s.appendLine(line[:0], t)
		off += int64(len(line))
		return true
	})
	s.marks = append(s.marks, off)
	return s
}

// Size is the length of the whole text.
func (s *sums) Size() int64 { return s.marks[len(s.marks)-1] }

// appendLine renders a tensor's line with zeros for the hash, and says where those are. sha256sum marks
// a line whose name it had to escape with a backslash; of what it escapes only that can be in a path.
func (s *sums) appendLine(b []byte, t uint32) (line []byte, digits int) {
	path := rawView.name + "/" + s.c.index.Path(s.c.index.Records[t].Node) + rawView.ext
	if strings.Contains(path, `\`) {
		path = strings.ReplaceAll(path, `\`, `\\`)
		b = append(b, '\\')
	}
	digits = len(b)
	b = append(b, zeros[:]...)
	b = append(b, "  "...)
	b = append(b, path...)
	return append(b, '\n'), digits
}

var zeros = [hexLen]byte(bytes.Repeat([]byte{'0'}, hexLen))

// ReadAt implements io.ReaderAt.
func (s *sums) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= s.Size() {
		return 0, io.EOF
	}
	text, skip, err := s.render(off, min(off+int64(len(p)), s.Size()))
	if err != nil {
		return 0, err
	}
	n := copy(p, text[skip:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// render makes the lines that hold the bytes from off to end; the first skip bytes are before off.
func (s *sums) render(off, end int64) (text []byte, skip int64, err error) {
	mark := sort.Search(len(s.marks), func(i int) bool { return s.marks[i] > off }) - 1
	start := s.marks[mark]
	var lines []sumLine
	for _, t := range s.order[mark*markEvery:] {
		var digits int
		text, digits = s.appendLine(text, t)
		if start+int64(len(text)) <= off {
			start += int64(len(text))
			text = text[:0]
			continue
		}
		lines = append(lines, sumLine{t, digits})
		if start+int64(len(text)) >= end {
			break
		}
	}
	return text, off - start, s.hash(text, lines)
}

// A sumLine is a tensor and where its digits stand in a text.
type sumLine struct {
	tensor uint32
	digits int
}

// hash puts the hashes into the text, several at once and in the order of the files, so that a disk is
// read from front to back.
func (s *sums) hash(text []byte, lines []sumLine) error {
	slices.SortFunc(lines, func(a, b sumLine) int { return cmp.Compare(a.tensor, b.tensor) })
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, l := range lines {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil // another line has failed
			}
			r, err := s.c.Digest(int(l.tensor), digest.Hash)
			if err == nil {
				hex.Encode(text[l.digits:], r.SHA256[:])
			}
			return err
		})
	}
	err := group.Wait()
	s.c.saveDigests()
	return err
}

// sumsFile is SHA256SUMS as a file of the tree.
type sumsFile struct{ *fileNode }

// Costly implements format.Costly.
func (sumsFile) Costly() {}

func (c *Checkpoint) sumsFile(ino uint64) Node {
	s := c.sums()
	st := c.fileStat(c.spanning, ino, s.Size())
	st.Block = smallBlock
	return sumsFile{&fileNode{
		stat: st,
		open: func() (Content, error) {
			if err := c.fresh(c.Shards...); err != nil {
				return nil, err
			}
			return newSegments(Produced(s, s.Size())), nil
		},
	}}
}
