//go:build linux

package fs

import (
	"context"
	iofs "io/fs"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"weightfs/format"
)

// A listing is an open directory: its entries as they were at opendir(3). The offset of an entry is
// its position: `.` 1, `..` 2, then the children.
type listing struct {
	dir     *dirNode
	entries format.Listing
	pos     int
	entry   fuse.DirEntry // go-fuse copies it before the next one
}

var (
	_ fusefs.FileReaddirenter = (*listing)(nil)
	_ fusefs.FileSeekdirer    = (*listing)(nil)
)

// OpendirHandle lets the kernel keep the listing, unless it may be another one later.
func (d *dirNode) OpendirHandle(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	l := &listing{dir: d, entries: d.dir.List()}
	if _, ok := d.dir.(format.Volatile); ok {
		return l, 0, 0
	}
	return l, fuse.FOPEN_CACHE_DIR | fuse.FOPEN_KEEP_CACHE, 0
}

func (l *listing) Readdirent(context.Context) (*fuse.DirEntry, syscall.Errno) {
	const dots = 2
	switch i := l.pos - dots; {
	case l.pos == 0:
		l.entry = fuse.DirEntry{Name: ".", Mode: fuse.S_IFDIR, Ino: l.dir.StableAttr().Ino}
	case l.pos == 1:
		l.entry = fuse.DirEntry{Name: "..", Mode: fuse.S_IFDIR, Ino: l.dir.parentIno()}
	case i >= l.entries.Len():
		return nil, 0
	default:
		e := l.entries.At(i)
		l.entry = fuse.DirEntry{Name: e.Name, Mode: typeBits(e.Type), Ino: e.Ino}
	}
	l.pos++
	l.entry.Off = uint64(l.pos)
	return &l.entry, 0
}

// Seekdir is asked for when the kernel dropped a part of the listing it had kept.
func (l *listing) Seekdir(_ context.Context, off uint64) syscall.Errno {
	if off > uint64(l.entries.Len())+2 {
		return syscall.EINVAL
	}
	l.pos = int(off)
	return 0
}

func (d *dirNode) parentIno() uint64 {
	if _, p := d.Parent(); p != nil {
		return p.StableAttr().Ino
	}
	return d.StableAttr().Ino
}

func typeBits(m iofs.FileMode) uint32 {
	switch m.Type() {
	case iofs.ModeDir:
		return fuse.S_IFDIR
	case iofs.ModeSymlink:
		return fuse.S_IFLNK
	}
	return fuse.S_IFREG
}
