//go:build linux

package fs

import (
	"bytes"
	"fmt"
	"log"
	"sync"
	"sync/atomic"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"weightfs/format"
)

// A reply that points into a map may turn out not to be there when the kernel copies it: the disk has a
// fault, or the file was cut that moment. The reader then gets EIO, and go-fuse, whose writev(2) failed,
// says no more than that in its log. So the last replies are remembered; when one has failed they are
// read by pread, which tells of what, where and why.

// An uncopied finds the replies that failed.
type uncopied struct {
	tree *tree
	busy sync.Mutex
	next atomic.Uint32
	sent [16]atomic.Pointer[reply] // between a reply and go-fuse's message a few others may be sent
}

// remember is told of a reply that was sent, and drops what it points to.
func (u *uncopied) remember(r *reply) {
	r.slices, r.inline = nil, [3][]byte{}
	u.sent[u.next.Add(1)%uint32(len(u.sent))].Store(r)
}

// failedWrite is what go-fuse logs of a reply that the kernel could not copy.
var failedWrite = fmt.Appendf(nil, "failed, err: %v. opcode: READ", fuse.Status(unix.EFAULT))

// Write takes a line of go-fuse's log. Most of its messages tell of readers that were interrupted.
func (u *uncopied) Write(line []byte) (int, error) {
	u.tree.Logger.Debug(string(bytes.TrimSpace(line)))
	if bytes.Contains(line, failedWrite) {
		go u.find()
	}
	return len(line), nil
}

// find reads again what was sent lately. While one is at it on a slow disk, others need not be.
func (u *uncopied) find() {
	if !u.busy.TryLock() {
		return
	}
	defer u.busy.Unlock()
	for i := range u.sent {
		if r := u.sent[i].Swap(nil); r != nil {
			u.reread(r)
		}
	}
}

func (u *uncopied) reread(r *reply) {
	for off, part := range r.ranges() {
		if err := readThrough(part); err != nil {
			u.tree.report(r.handle.file, r.handle.tensorAt(off), err)
			return
		}
	}
}

// readThrough reads a segment to its end, and drops what it read.
func readThrough(seg format.Segment) error {
	buf := make([]byte, min(seg.Len, 64<<10))
	for off := int64(0); off < seg.Len; off += int64(len(buf)) {
		buf = buf[:min(seg.Len-off, int64(len(buf)))]
		if err := seg.ReadAt(buf, off); err != nil {
			return err
		}
	}
	return nil
}

// logger is what go-fuse logs to.
func (u *uncopied) logger() *log.Logger { return log.New(u, "", 0) }
