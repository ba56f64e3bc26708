package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"weightfs/format"
)

// identity tells the bytes of a content from any others: the files that it is made of as they are
// now, the ranges of them, and what stands before these.
func (j *job) identity() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d %d\n", j.opt.Version, j.size, stripeSize)
	known := map[*format.Shard]int{}
	for off := int64(0); off < j.size; {
		seg, start := j.content.Segment(off)
		if s := seg.Shard; s != nil {
			if _, ok := known[s]; !ok {
				known[s] = len(known)
				fmt.Fprintf(h, "%q %d %d %s\n", s.Path, s.Size(), s.Stat().ModTime().UnixNano(), fileNumber(s.Stat()))
			}
			fmt.Fprintf(h, "%d %d %d\n", known[s], seg.Off, seg.Len)
		}
		off = start + seg.Len
	}
	fmt.Fprintln(h, j.mtime.UnixNano())
	made := io.NewSectionReader(format.ContentReader{Content: j.content}, 0, j.made())
	if _, err := io.Copy(h, made); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// Of the bytes before the first range of a file so many are looked at: all of a header, the beginning
// of decoded numbers.
const (
	mostHeader  = 128 << 20
	mostNumbers = 64 << 10
)

// made is how many bytes at the beginning are made on read, such as a header.
func (j *job) made() int64 {
	off := int64(0)
	for off < j.size {
		seg, start := j.content.Segment(off)
		if seg.Shard != nil {
			break
		}
		off = start + seg.Len
	}
	if j.tensor {
		return min(off, mostNumbers)
	}
	return min(off, mostHeader)
}

// present tells whether the copy is there: by its size and time, as rsync(1) does, and by its header,
// which may be another one for the same source (with other names).
func (j *job) present() bool {
	st, err := os.Lstat(j.to)
	if err != nil || !st.Mode().IsRegular() || st.Size() != j.size || !sameTime(st.ModTime(), j.mtime) {
		return false
	}
	n := j.made()
	if n == 0 {
		return true
	}
	f, err := os.Open(j.to)
	if err != nil {
		return false
	}
	defer f.Close()
	return sameBytes(f, format.ContentReader{Content: j.content}, n)
}

// Begun tells whether a copy of f to the path to is there, or with Options.Resume a part of one.
func (c *Copier) Begun(f format.File, to string) (bool, error) {
	if _, err := os.Lstat(filepath.Dir(to)); err != nil {
		return false, nil
	}
	j, done, err := c.job(context.Background(), f, to)
	if err != nil {
		return false, err
	}
	defer done()
	if j.present() {
		return true, nil
	}
	if !c.opt.Resume || j.size <= stripeSize {
		return false, nil
	}
	id, err := j.identity()
	if err != nil {
		return false, err
	}
	_, err = os.Lstat(partialPath(to, id))
	return err == nil, nil
}

// sameBytes compares the first n bytes.
func sameBytes(a, b io.ReaderAt, n int64) bool {
	p, q := make([]byte, min(n, bufferSize)), make([]byte, min(n, bufferSize))
	for off := int64(0); off < n; off += int64(len(p)) {
		p, q = p[:min(int64(len(p)), n-off)], q[:min(int64(len(q)), n-off)]
		if k, _ := a.ReadAt(p, off); k < len(p) {
			return false
		}
		if k, _ := b.ReadAt(q, off); k < len(q) || !bytes.Equal(p, q) {
			return false
		}
	}
	return true
}

// sameTime allows for file systems that keep times in coarser steps.
func sameTime(disk, want time.Time) bool {
	for _, step := range []time.Duration{1, 100, time.Microsecond, time.Millisecond, time.Second, 2 * time.Second} {
		if disk.Equal(want.Truncate(step)) {
			return true
		}
	}
	return false
}
