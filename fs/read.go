//go:build linux

package fs

import (
	"context"
	"fmt"
	"iter"
	"os"
	"syscall"
	"time"
	"unsafe"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"weightfs/format"
)

// A handle is an open file.
type handle struct {
	tree    *tree
	file    format.File
	content format.Content
	size    int64
}

var (
	_ fusefs.FileReader   = (*handle)(nil)
	_ fusefs.FileReleaser = (*handle)(nil)
)

// tensorAt names the tensor of which the bytes at an offset are.
func (h *handle) tensorAt(off int64) string {
	if s, ok := h.content.(format.Spanning); ok {
		return s.TensorAt(off)
	}
	return tensorOf(h.file)
}

// Release is told of the last close.
func (h *handle) Release(context.Context) syscall.Errno {
	if o := h.tree.Observer; o != nil {
		o.Closed(h.file)
	}
	return 0
}

// minSlice is the length from which a part of a reply is an entry of its own in the vector. Shorter
// parts are copied into one buffer side by side, so that a request of 1 MiB makes at most
// 2*256+1 entries, however many tiny tensors it spans: writev(2) takes 1024.
const minSlice = 4096

// Read answers with exactly the bytes asked for, fewer only at the end of the file.
func (h *handle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	r := &reply{handle: h, off: off, buffer: dest}
	if h.tree.Observer != nil {
		r.begin = time.Now()
	}
	dest = dest[:max(0, min(int64(len(dest)), h.size-off))]
	for len(dest) > 0 {
		seg, start := h.content.Segment(off)
		n := min(int64(len(dest)), start+seg.Len-off)
		if n <= 0 {
			return nil, r.fail(off, fmt.Errorf("no segment holds offset %d of %d", off, h.size))
		}
		part, err := segmentPart(seg, off-start, dest[:n])
		if err != nil {
			return nil, r.fail(off, err)
		}
		buffered := unsafe.SliceData(part) == unsafe.SliceData(dest)
		r.mapped = r.mapped || seg.Shard != nil && !buffered
		r.add(part, buffered)
		dest, off = dest[n:], off+n
	}
	return r, 0
}

// segmentPart gives len(dest) bytes at off of a segment: memory for the kernel to copy from, or
// dest, filled. Nothing here looks at the bytes of a map.
func segmentPart(seg format.Segment, off int64, dest []byte) ([]byte, error) {
	n := int64(len(dest))
	switch {
	case n < minSlice:
	case seg.Data != nil:
		return seg.Data[off : off+n], nil
	case seg.Shard != nil:
		if err := seg.Shard.Intact(seg.Off + off); err != nil {
			return nil, err
		}
		if b := seg.Shard.Slice(seg.Off+off, n); b != nil {
			return b, nil
		}
	}
	return dest, seg.ReadAt(dest, off)
}

// A reply is the answer to one READ, which go-fuse passes to writev(2) as it is.
type reply struct {
	handle   *handle
	off      int64
	buffer   []byte // the request's
	begin    time.Time
	slices   [][]byte
	inline   [3][]byte // what most replies need: header, range, rest
	size     int
	buffered bool // the last slice is a part of the request's buffer
	filled   bool // a slice is
	mapped   bool // a slice is a part of a map
}

// add appends a part. Parts of the request's buffer follow each other there as in the file.
func (r *reply) add(part []byte, buffered bool) {
	if r.slices == nil {
		r.slices = r.inline[:0]
	}
	r.size += len(part)
	r.filled = r.filled || buffered
	if last := len(r.slices) - 1; buffered && r.buffered {
		r.slices[last] = r.slices[last][:len(r.slices[last])+len(part)]
	} else {
		r.slices = append(r.slices, part)
	}
	r.buffered = buffered
}

// ranges gives the parts of the reply that are ranges of shards, each with its offset in the file.
func (r *reply) ranges() iter.Seq2[int64, format.Segment] {
	return func(yield func(int64, format.Segment) bool) {
		for off, end := r.off, r.off+int64(r.size); off < end; {
			seg, start := r.handle.content.Segment(off)
			n := min(end-off, start+seg.Len-off)
			if seg.Shard != nil && !yield(off, format.Range(seg.Shard, seg.Off+off-start, n)) {
				return
			}
			off += n
		}
	}
}

// fail says what the reader gets instead of bytes, which it wanted from offset off.
func (r *reply) fail(off int64, err error) syscall.Errno {
	errno := errnoOf(err)
	r.handle.tree.report(r.handle.file, r.handle.tensorAt(off), err)
	if o := r.handle.tree.Observer; o != nil {
		o.Read(r.handle.file, 0, time.Since(r.begin), errno)
	}
	return errno
}

// Slices makes go-fuse send the reply by writev(2), without splice(2) and without a copy.
func (r *reply) Slices() ([][]byte, fuse.Status) { return r.slices, fuse.OK }

// Size implements fuse.ReadResult.
func (r *reply) Size() int { return r.size }

// Bytes would copy in Go what may be a map; go-fuse calls it only where there are no Slices.
func (r *reply) Bytes([]byte) ([]byte, fuse.Status) { return nil, fuse.EIO }

// Done implements fuse.ReadResult: the kernel has its copy, or could not make it.
func (r *reply) Done() {
	if o := r.handle.tree.Observer; o != nil {
		o.Read(r.handle.file, r.size, time.Since(r.begin), 0)
	}
	if !r.filled || len(r.buffer) != maxRequest {
		giveBack(r.buffer)
	}
	r.buffer = nil
	if r.handle.tree.DropBehind {
		r.handle.tree.dropper.sent(r)
	}
	if r.mapped {
		r.handle.tree.uncopied.remember(r)
	}
}

// usualRead is the longest request that is worth no call of giveBack: what the kernel reads ahead where
// it was not told to read more.
const usualRead = 128 << 10

// giveBack frees the memory behind a request's buffer. go-fuse keeps one of every length for every
// processor, up to 1 MiB: half a gigabyte for four, of which it and most replies use nothing. One of the
// full length that was filled is not given back: the next of a sequential read would find every page of it
// missing. One that was not is, since the collector may have cleared it, and so filled it.
func giveBack(buffer []byte) {
	if len(buffer) <= usualRead {
		return
	}
	page := os.Getpagesize()
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(buffer)))) & (page - 1)
	whole := (len(buffer) - skip) &^ (page - 1)
	unix.Madvise(buffer[skip:skip+whole], unix.MADV_DONTNEED)
}
