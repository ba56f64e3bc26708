//go:build linux

package fs

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"weightfs/format"
)

// fsType is what the mount table calls a mount of ours.
const fsType = "fuse.weightfs"

// Options say how a tree is mounted. The zero value is a mount for its owner alone.
type Options struct {
	FsName     string  // the source, as `df` and `findmnt` show it
	Size       int64   // bytes that `df` shows
	AllowOther bool    // let other users in, as far as the permissions allow
	UID, GID   *uint32 // owner of everything, instead of the nodes' own
	Umask      *uint32 // permissions missing from everything, instead of the nodes' own
	ReadAhead  int     // bytes that the kernel reads ahead where we may say so; 0 is 2 MiB
	XAttr      bool    // show extended attributes
	DropBehind bool    // let go of a shard's cached pages when the kernel has its own of the mount
	Outsiders  bool    // answer this process with EDEADLK
	Debug      bool    // log every request
	Logger     *slog.Logger
	Observer   Observer // may be nil
	Confine    func()   // called once, when it is mounted and before the first answer; may be nil
}

// What exists never changes its name, its attributes or its bytes, so the kernel keeps them. Expired
// attributes would cost a GETATTR for each cached read(2).
var forever = 365 * 24 * time.Hour

const (
	// maxBackground is how many READs of the kernel's read-ahead, which is most, are sent before others
	// must wait: those for a disk that does not answer must not hold up those for another.
	maxBackground = 4096
	// maxRequest is the largest READ that a kernel sends unless its administrator raised a sysctl.
	maxRequest = 1 << 20
	// defaultReadAhead reads as fast in sequence as 16 MiB, which made a random touch of a map
	// wait ten times longer.
	defaultReadAhead = 2 << 20
)

// Mount shows root at dir, an existing directory or the /dev/fd/N of a mount that was made for us,
// and returns when it can be read. On an error nothing is left mounted.
func Mount(dir string, root format.Dir, opt Options) (*Server, error) {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.ReadAhead == 0 {
		opt.ReadAhead = defaultReadAhead
	}
	threads()
	boundGarbage()
	conn, err := attach(dir, opt)
	if err != nil {
		return nil, err
	}
	s := &Server{Control: Control{connection: conn, log: opt.Logger}}
	t := newTree(opt)
	s.fuse, err = fuse.NewServer(t.bridge(root), conn.device(), t.mountOptions())
	if err != nil {
		conn.detach() // go-fuse has closed the device: the mount is dead
		conn.close()
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	s.readAhead(opt.ReadAhead)
	if opt.Confine != nil {
		opt.Confine()
	}
	s.serve()
	if err := s.ready(); err != nil {
		s.Stop(0)
		return nil, err
	}
	return s, nil
}

// threads lets at least four requests be in the kernel at once, also on a machine of two processors: a
// thread that copies a reply, or waits there for a disk, keeps its place among GOMAXPROCS for up to
// 10 ms. go-fuse takes its number of readers from it.
func threads() {
	const least = 4
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < least {
		runtime.GOMAXPROCS(least)
	}
}

func (t *tree) bridge(root format.Dir) fuse.RawFileSystem {
	st := root.Stat()
	var raw fuse.RawFileSystem = readOnly{fusefs.NewNodeFS(&dirNode{tree: t, dir: root}, &fusefs.Options{
		EntryTimeout:    &forever,
		AttrTimeout:     &forever,
		NegativeTimeout: &forever,
		NullPermissions: true, // mode 0 is 0, not 0644
		RootStableAttr:  &fusefs.StableAttr{Ino: max(st.Ino, 1), Gen: st.Gen},
	})}
	if t.Outsiders {
		raw = outsiders{raw}
	}
	if _, ok := root.(format.Volatile); ok {
		return raw
	}
	return &unopened{RawFileSystem: raw}
}

func (t *tree) mountOptions() *fuse.MountOptions {
	return &fuse.MountOptions{
		MaxWrite:                 maxRequest, // of a READ as well
		MaxBackground:            maxBackground,
		MaxInflightRequestBytes:  64 << 20,
		DisableSplice:            true, // replies are vectors
		DisableXAttrs:            !t.XAttr,
		ExplicitDataCacheControl: true,
		ExtraCapabilities:        fuse.CAP_DIRECT_IO_ALLOW_MMAP, // of what is costly
		EnableSymlinkCaching:     true,
		Debug:                    t.Debug,
		Logger:                   t.uncopied.logger(),
		PanicHandler:             t.panicked,
	}
}

func (t *tree) panicked(v any) fuse.Status {
	t.Logger.Error("internal error", "panic", v, "stack", string(debug.Stack()))
	return fuse.EIO
}
