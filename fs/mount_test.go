//go:build linux

package fs

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weightfs/format"
)

func needFUSE(t testing.TB) {
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no FUSE here: ", err)
	}
	f.Close()
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// mount mounts root for the time of the test, which fails on an internal error or a mount left behind.
func mount(t testing.TB, root format.Dir, opt Options) (*Server, string) {
	t.Helper()
	dir := t.TempDir()
	return mountAt(t, dir, dir, root, opt), dir
}

func mountAt(t testing.TB, at, dir string, root format.Dir, opt Options) *Server {
	t.Helper()
	needFUSE(t)
	logged := &logBuffer{}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.NewTextHandler(logged, nil))
	}
	s, err := Mount(at, root, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(0); err != nil {
			t.Error(err)
		}
		<-s.Done()
		if _, ok, err := Find(dir); ok || err != nil {
			t.Errorf("still mounted: %v", err)
		}
		if strings.Contains(logged.String(), "internal error") {
			t.Error(logged)
		}
	})
	return s
}

func TestTree(t *testing.T) {
	_, mnt := mount(t, fixture(), Options{FsName: "/models/a,b c", Size: 1 << 30})
	checkTree(t, mnt)
	m, _, err := Find(mnt)
	if err != nil || m.Source != "/models/a,b c" || !m.Ours() || m.UID != os.Geteuid() {
		t.Errorf("mount table has %+v, %v", m, err)
	}
}

func checkTree(t *testing.T, mnt string) {
	t.Helper()
	c := newClient(t)
	for _, tt := range []struct{ verb, path, want string }{
		{"list", "", "README.txt raw by-name"},
		{"list", "/raw/layers", "0 1 2 10"},
		{"list", "/raw/layers", "0 1 2 10"}, // from the kernel's cache
		{"readlink", "/by-name/layers.0.w", "../raw/layers/0/w.raw"},
		{"statfs", "", "bytes=1073741824 free=0 name=255"},
	} {
		if got := c.must(tt.verb, mnt+tt.path); got != tt.want {
			t.Errorf("%s %s = %q, want %q", tt.verb, tt.path, got, tt.want)
		}
	}
	if got := c.must("readall", c.open(mnt+"/by-name/layers.0.w")); got != "zero" {
		t.Errorf("through the link: %q", got)
	}
	c.wants(syscall.ENOENT, "open", mnt+"/raw/layers/3")
	c.wants(syscall.ENOENT, "open", mnt+"/raw/layers/3")
	c.must("fstest", mnt)
}

func TestStat(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, who may look at what belongs to others")
	}
	root := dir("f", file(format.Literal(make([]byte, 1000))), "d", dir(), "l", link("f"), "secret", text("x"))
	root.children["secret"].(*memFile).stat.Mode = 0
	f := root.children["f"].(*memFile)
	f.stat.UID, f.stat.GID, f.stat.Mode, f.stat.Ino = 7, 8, 0o641, 100
	f.stat.Block = 4096
	for i, name := range []string{"d", "l", "secret"} {
		switch n := root.children[name].(type) {
		case *memDir:
			n.stat.Ino = uint64(101 + i)
		case *memLink:
			n.stat.Ino = uint64(101 + i)
		case *memFile:
			n.stat.Ino = uint64(101 + i)
		}
	}
	five, mask := uint32(5), uint32(0o027)
	const rest = " ino=%d mtime=1700000000"
	for _, tt := range []struct {
		opt  Options
		want []string
	}{
		{Options{}, []string{
			"mode=100440 nlink=1 uid=7 gid=8 size=1000 blocks=2 blksize=4096",
			"mode=40555 nlink=2 uid=0 gid=0 size=0 blocks=0 blksize=1048576",
			"mode=120777 nlink=1 uid=0 gid=0 size=1 blocks=1 blksize=1048576",
			"mode=100000 nlink=1 uid=0 gid=0 size=1 blocks=1 blksize=1048576",
		}},
		{Options{UID: &five, GID: &five, Umask: &mask}, []string{
			"mode=100440 nlink=1 uid=5 gid=5 size=1000 blocks=2 blksize=4096",
			"mode=40550 nlink=2 uid=5 gid=5 size=0 blocks=0 blksize=1048576",
			"mode=120777 nlink=1 uid=5 gid=5 size=1 blocks=1 blksize=1048576",
			"mode=100440 nlink=1 uid=5 gid=5 size=1 blocks=1 blksize=1048576",
		}},
	} {
		_, mnt := mount(t, root, tt.opt)
		c := newClient(t)
		for i, name := range []string{"f", "d", "l", "secret"} {
			want := tt.want[i] + fmt.Sprintf(rest, 100+i)
			if diff := cmp.Diff(want, c.must("stat", mnt+"/"+name)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}

// Both ways of mounting, and a device that was opened by somebody else.
func TestPassedDevice(t *testing.T) {
	needFUSE(t)
	for name, attach := range map[string]func(dir string) (int, error){
		"mount(2)":   func(dir string) (int, error) { return attachDirect(dir, Options{FsName: "x"}) },
		"fusermount": func(dir string) (int, error) { return attachHelper(fusermount(), dir, Options{FsName: `x,\y`}) },
		"without ro": attachWritable,
	} {
		t.Run(name, func(t *testing.T) {
			if name == "fusermount" && fusermount() == "" {
				t.Skip("no fusermount3")
			}
			mnt := t.TempDir()
			fd, err := attach(mnt)
			if errors.Is(err, unix.EPERM) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			s := mountAt(t, fmt.Sprintf("/dev/fd/%d", fd), mnt, fixture(), Options{Size: 1 << 30, XAttr: true})
			if s.number == 0 {
				t.Skip("this kernel does not tell the connection of a descriptor")
			}
			checkTree(t, mnt)
			checkReadOnly(t, mnt)
		})
	}
}

// attachWritable mounts as mount.fuse3 does without further options.
func attachWritable(dir string) (int, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	data := fmt.Sprintf("fd=%d,rootmode=%o,user_id=%d,group_id=%d", fd, unix.S_IFDIR, os.Geteuid(), os.Getegid())
	return fd, unix.Mount("x", dir, fsType, 0, data)
}

func TestReadOnly(t *testing.T) {
	_, mnt := mount(t, fixture(), Options{XAttr: true})
	checkReadOnly(t, mnt)
}

func checkReadOnly(t *testing.T, mnt string) {
	t.Helper()
	c := newClient(t)
	for verb := range writeCalls {
		path := mnt + "/README.txt"
		switch verb {
		case "rmdir":
			path = mnt + "/raw/layers"
		case "tmpfile":
			path = mnt + "/raw/layers"
		}
		c.wants(syscall.EROFS, verb, path)
	}
	if got := c.must("list", mnt); got != "README.txt raw by-name" {
		t.Errorf("afterwards there is %q", got)
	}
}

func TestOtherUsers(t *testing.T) {
	nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
	if err := (&exec.Cmd{Path: "/proc/self/exe", Args: []string{"", "-test.run=^$"}, SysProcAttr: &syscall.SysProcAttr{Credential: nobody}}).Run(); err != nil {
		t.Skip("needs root: ", err)
	}
	root := dir("open", text("x"), "closed", text("x"))
	root.children["closed"].(*memFile).stat.Mode = 0o400
	c := newClientAs(t, nobody)
	mnt := publicDir(t)
	mountAt(t, mnt, mnt, root, Options{})
	c.must("stat", filepath.Dir(mnt))
	c.wants(syscall.EACCES, "stat", mnt+"/open")

	mnt = publicDir(t)
	mountAt(t, mnt, mnt, root, Options{AllowOther: true})
	c.must("readall", c.open(mnt+"/open"))
	c.wants(syscall.EACCES, "open", mnt+"/closed")
}

// publicDir is a directory that everyone can reach, which t.TempDir is not.
func publicDir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("", "weightfs-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(d) })
	if err := os.Chmod(d, 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestXAttr(t *testing.T) {
	s := openShard(t, bytes.Repeat([]byte("x"), 24))
	root := dir("w.raw", shardFile(s), "r.txt", text("x"))
	_, mnt := mount(t, root, Options{XAttr: true})
	c := newClient(t)
	want := map[string]string{"name": "m.weight", "dtype": "F32", "shape": "[2,3]", "file": "shard", "offset": "0"}
	for attr, value := range want {
		if got := c.must("getxattr", mnt+"/w.raw#user.tensor."+attr); got != value {
			t.Errorf("%s = %q, want %q", attr, got, value)
		}
	}
	if got := c.must("listxattr", mnt+"/w.raw"); strings.Count(got, "\x00") != len(want) {
		t.Errorf("list: %q", got)
	}
	c.wants(syscall.ENODATA, "getxattr", mnt+"/w.raw#user.other")
	c.wants(syscall.ENODATA, "getxattr", mnt+"/r.txt#user.tensor.name")

	_, mnt = mount(t, root, Options{})
	c.wants(syscall.EOPNOTSUPP, "getxattr", mnt+"/w.raw#user.tensor.name")
}
