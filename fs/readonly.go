//go:build linux

package fs

import (
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// readOnly answers EROFS to whatever would change something. The kernel does that itself where the mount
// has `ro`. One that was made for us may lack it, and go-fuse would let unlink(2) and rmdir(2) succeed.
type readOnly struct{ fuse.RawFileSystem }

// Open implements fuse.RawFileSystem.
func (r readOnly) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if in.Flags&unix.O_ACCMODE != unix.O_RDONLY || in.Flags&unix.O_TRUNC != 0 {
		return fuse.EROFS
	}
	return r.RawFileSystem.Open(cancel, in, out)
}

// Access implements fuse.RawFileSystem.
func (r readOnly) Access(cancel <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	if in.Mask&unix.W_OK != 0 {
		return fuse.EROFS
	}
	return r.RawFileSystem.Access(cancel, in)
}

// SetAttr implements fuse.RawFileSystem.
func (readOnly) SetAttr(<-chan struct{}, *fuse.SetAttrIn, *fuse.AttrOut) fuse.Status {
	return fuse.EROFS
}

// SetXAttr implements fuse.RawFileSystem.
func (readOnly) SetXAttr(<-chan struct{}, *fuse.SetXAttrIn, string, []byte) fuse.Status {
	return fuse.EROFS
}

// RemoveXAttr implements fuse.RawFileSystem.
func (readOnly) RemoveXAttr(<-chan struct{}, *fuse.InHeader, string) fuse.Status { return fuse.EROFS }

// Create implements fuse.RawFileSystem.
func (readOnly) Create(<-chan struct{}, *fuse.CreateIn, string, *fuse.CreateOut) fuse.Status {
	return fuse.EROFS
}

// Tmpfile implements fuse.RawFileSystem.
func (readOnly) Tmpfile(<-chan struct{}, *fuse.CreateIn, *fuse.CreateOut) fuse.Status {
	return fuse.EROFS
}

// Mknod implements fuse.RawFileSystem.
func (readOnly) Mknod(<-chan struct{}, *fuse.MknodIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EROFS
}

// Mkdir implements fuse.RawFileSystem.
func (readOnly) Mkdir(<-chan struct{}, *fuse.MkdirIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EROFS
}

// Link implements fuse.RawFileSystem.
func (readOnly) Link(<-chan struct{}, *fuse.LinkIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EROFS
}

// Symlink implements fuse.RawFileSystem.
func (readOnly) Symlink(<-chan struct{}, *fuse.InHeader, string, string, *fuse.EntryOut) fuse.Status {
	return fuse.EROFS
}

// Rename implements fuse.RawFileSystem.
func (readOnly) Rename(<-chan struct{}, *fuse.RenameIn, string, string) fuse.Status {
	return fuse.EROFS
}

// Unlink implements fuse.RawFileSystem.
func (readOnly) Unlink(<-chan struct{}, *fuse.InHeader, string) fuse.Status { return fuse.EROFS }

// Rmdir implements fuse.RawFileSystem.
func (readOnly) Rmdir(<-chan struct{}, *fuse.InHeader, string) fuse.Status { return fuse.EROFS }
