//go:build linux

package fs

import "github.com/hanwen/go-fuse/v2/fuse"

// unopened is a file system whose directories are not opened, where the kernel can do without (since 5.1):
// it asks for a listing right away and keeps it, so that a walk makes half the requests, and a second one
// none. Where a listing may change there must be an opendir, which says that it is not to be kept.
type unopened struct {
	fuse.RawFileSystem
	agreed bool
}

// Init implements fuse.RawFileSystem.
func (u *unopened) Init(s *fuse.Server) {
	u.agreed = s.KernelSettings().Flags64()&fuse.CAP_NO_OPENDIR_SUPPORT != 0
	u.RawFileSystem.Init(s)
}

// OpenDir implements fuse.RawFileSystem. After this answer the kernel never asks again.
func (u *unopened) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if u.agreed {
		return fuse.ENOSYS
	}
	return u.RawFileSystem.OpenDir(cancel, in, out)
}

// ReadDir implements fuse.RawFileSystem.
func (u *unopened) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return u.read(cancel, in, out, u.RawFileSystem.ReadDir)
}

// ReadDirPlus implements fuse.RawFileSystem.
func (u *unopened) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return u.read(cancel, in, out, u.RawFileSystem.ReadDirPlus)
}

type readDir func(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status

// read opens a directory for one request.
func (u *unopened) read(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList, read readDir) fuse.Status {
	if !u.agreed {
		return read(cancel, in, out)
	}
	var opened fuse.OpenOut
	if s := u.RawFileSystem.OpenDir(cancel, &fuse.OpenIn{InHeader: in.InHeader}, &opened); !s.Ok() {
		return s
	}
	defer u.RawFileSystem.ReleaseDir(&fuse.ReleaseIn{InHeader: in.InHeader, Fh: opened.Fh})
	in.Fh = opened.Fh
	return read(cancel, in, out)
}
