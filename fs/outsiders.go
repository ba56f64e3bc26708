//go:build linux

package fs

import (
	"os"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// outsiders is a file system that does not answer the server's own process. A directory of many
// checkpoints is scanned while it is mounted; should a link in it lead into the mount, the scan would
// wait for its own end.
type outsiders struct{ fuse.RawFileSystem }

// ours tells whether a request comes from this process. The kernel gives the thread.
func ours(h *fuse.InHeader) bool { return unix.Tgkill(os.Getpid(), int(h.Pid), 0) == nil }

const deadlock = fuse.Status(unix.EDEADLK)

// Lookup implements fuse.RawFileSystem.
func (o outsiders) Lookup(cancel <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if ours(h) {
		return deadlock
	}
	return o.RawFileSystem.Lookup(cancel, h, name, out)
}

// OpenDir implements fuse.RawFileSystem.
func (o outsiders) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if ours(&in.InHeader) {
		return deadlock
	}
	return o.RawFileSystem.OpenDir(cancel, in, out)
}

// Open implements fuse.RawFileSystem.
func (o outsiders) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if ours(&in.InHeader) {
		return deadlock
	}
	return o.RawFileSystem.Open(cancel, in, out)
}
