//go:build linux

package fs

import (
	"cmp"
	"context"
	"errors"
	iofs "io/fs"
	"sync"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"weightfs/format"
)

// A tree is what all nodes of one mount share.
type tree struct {
	Options
	reported sync.Map // of fault: when
	uncopied uncopied
	dropper  dropper
}

func newTree(opt Options) *tree {
	t := &tree{Options: opt}
	t.uncopied.tree = t
	return t
}

type dirNode struct {
	fusefs.Inode
	tree *tree
	dir  format.Dir
}

type fileNode struct {
	fusefs.Inode
	tree *tree
	file format.File
}

type linkNode struct {
	fusefs.Inode
	tree *tree
	link format.Link
}

var (
	_ fusefs.NodeLookuper       = (*dirNode)(nil)
	_ fusefs.NodeOpendirHandler = (*dirNode)(nil)
	_ fusefs.NodeGetattrer      = (*dirNode)(nil)
	_ fusefs.NodeStatfser       = (*dirNode)(nil)
	_ fusefs.NodeGetattrer      = (*fileNode)(nil)
	_ fusefs.NodeOpener         = (*fileNode)(nil)
	_ fusefs.NodeStatfser       = (*fileNode)(nil)
	_ fusefs.NodeGetattrer      = (*linkNode)(nil)
	_ fusefs.NodeReadlinker     = (*linkNode)(nil)
	_ fusefs.NodeStatfser       = (*linkNode)(nil)
)

// Lookup makes the inode of a child, which lives as long as the kernel remembers it.
func (d *dirNode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	child, err := d.dir.Lookup(name)
	if err != nil {
		if v, ok := d.dir.(format.Volatile); ok {
			out.SetEntryTimeout(timeout(v)) // else its absence is remembered like all else
		}
		if !errors.Is(err, iofs.ErrNotExist) {
			d.tree.report(d.dir, "", err)
		}
		return nil, errnoOf(err)
	}
	if v, ok := child.(format.Volatile); ok {
		out.SetEntryTimeout(timeout(v))
		out.SetAttrTimeout(timeout(v))
	}
	ops, mode := d.tree.node(child)
	st := child.Stat()
	d.tree.attr(st, mode, &out.Attr)
	return d.NewInode(ctx, ops, fusefs.StableAttr{Mode: mode, Ino: st.Ino, Gen: st.Gen}), 0
}

// timeout is at least a nanosecond: go-fuse takes 0 for the mount's default.
func timeout(v format.Volatile) time.Duration { return max(v.TTL(), 1) }

func (t *tree) node(n format.Node) (ops fusefs.InodeEmbedder, mode uint32) {
	switch n := n.(type) {
	case format.Dir:
		return &dirNode{tree: t, dir: n}, fuse.S_IFDIR
	case format.Link:
		return &linkNode{tree: t, link: n}, fuse.S_IFLNK
	}
	return &fileNode{tree: t, file: n.(format.File)}, fuse.S_IFREG
}

// blockSize is what stat(2) recommends where a node does not: cat(1) and cp(1) then read 1 MiB a call.
const blockSize = 1 << 20

func (t *tree) attr(st format.Stat, mode uint32, out *fuse.Attr) {
	*out = fuse.Attr{
		Ino:     st.Ino,
		Size:    uint64(st.Size),
		Blocks:  (uint64(st.Size) + 511) / 512,
		Blksize: uint32(cmp.Or(st.Block, blockSize)),
		Mode:    mode | t.permissions(st, mode),
		Nlink:   max(st.Nlink, 1),
		Owner:   fuse.Owner{Uid: st.UID, Gid: st.GID},
	}
	if mode == fuse.S_IFDIR {
		out.Nlink = max(st.Nlink, 2)
	}
	if t.UID != nil {
		out.Uid = *t.UID
	}
	if t.GID != nil {
		out.Gid = *t.GID
	}
	out.SetTimes(&st.ModTime, &st.ModTime, &st.ModTime)
}

// permissions never has a write bit. A umask replaces the node's own bits, as fuse(8) says of it.
func (t *tree) permissions(st format.Stat, mode uint32) uint32 {
	all := uint32(0o444)
	switch mode {
	case fuse.S_IFLNK:
		return 0o777
	case fuse.S_IFDIR:
		all = 0o555
	}
	if t.Umask != nil {
		return all &^ *t.Umask
	}
	return all & uint32(st.Mode.Perm())
}

func (t *tree) getattr(n format.Node, mode uint32, out *fuse.AttrOut) syscall.Errno {
	if v, ok := n.(format.Volatile); ok {
		out.SetTimeout(timeout(v))
	}
	t.attr(n.Stat(), mode, &out.Attr)
	return 0
}

func (d *dirNode) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return d.tree.getattr(d.dir, fuse.S_IFDIR, out)
}

func (f *fileNode) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return f.tree.getattr(f.file, fuse.S_IFREG, out)
}

func (l *linkNode) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return l.tree.getattr(l.link, fuse.S_IFLNK, out)
}

func (l *linkNode) Readlink(context.Context) ([]byte, syscall.Errno) {
	return []byte(l.link.Target()), 0
}

// Open keeps what the kernel has cached, since a node's bytes never change, and asks for no FLUSH at
// close, which would have nothing to do.
func (f *fileNode) Open(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	content, err := f.file.Open()
	errno := errnoOf(err)
	if o := f.tree.Observer; o != nil {
		o.Opened(f.file, errno)
	}
	if err != nil {
		f.tree.report(f.file, tensorOf(f.file), err)
		return nil, 0, errno
	}
	h := &handle{tree: f.tree, file: f.file, content: content, size: content.Size()}
	if _, ok := f.file.(format.Costly); ok {
		return h, fuse.FOPEN_DIRECT_IO | fuse.FOPEN_NOFLUSH, 0 // no read-ahead
	}
	return h, fuse.FOPEN_KEEP_CACHE | fuse.FOPEN_NOFLUSH, 0
}

// statfs shows a full file system: without it, `df` leaves the mount out.
func (t *tree) statfs(out *fuse.StatfsOut) syscall.Errno {
	const block = 512
	*out = fuse.StatfsOut{Blocks: (uint64(t.Size) + block - 1) / block, Bsize: block, Frsize: block, NameLen: 255}
	return 0
}

func (d *dirNode) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	return d.tree.statfs(out)
}

func (f *fileNode) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	return f.tree.statfs(out)
}

func (l *linkNode) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	return l.tree.statfs(out)
}
