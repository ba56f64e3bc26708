//go:build linux

package fs

import (
	"bufio"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weightfs/format"
)

func TestBusy(t *testing.T) {
	s, mnt := mount(t, fixture(), Options{})
	c := newClient(t)
	fd := c.open(mnt + "/README.txt")
	if err := s.Unmount(); !errors.Is(err, ErrBusy) {
		t.Fatalf("unmounting a busy mount: %v", err)
	}
	if err := Unmount(mnt); !errors.Is(err, ErrBusy) {
		t.Fatalf("unmounting a busy mount by its path: %v", err)
	}
	users, err := Busy(mnt)
	if err != nil || len(users) != 1 || users[0].PID != c.cmd.Process.Pid || users[0].How != fmt.Sprint("fd ", fd) || users[0].Path != mnt+"/README.txt" {
		t.Errorf("users: %+v, %v", users, err)
	}
	c.must("close", fd)
	c.must("chdir", mnt+"/raw")
	if users, _ := Busy(mnt); len(users) != 1 || users[0].How != "cwd" {
		t.Errorf("users: %+v", users)
	}
	c.must("chdir", "/")
	c.must("keep-map", c.open(mnt+"/README.txt"))
	if users, _ := Busy(mnt); len(users) != 1 || users[0].How != "map" || users[0].Path != mnt+"/README.txt" {
		t.Errorf("users: %+v", users)
	}
	c.must("drop-map", 0)
	if err := Unmount(mnt); err != nil {
		t.Error(err)
	}
	<-s.Done()
	if err := Unmount(mnt); !errors.Is(err, ErrForeign) {
		t.Errorf("unmounting nothing: %v", err)
	}
}

func TestStopServesOpenFiles(t *testing.T) {
	want := noise(1 << 20)
	s, mnt := mount(t, dir("f", file(format.Literal(want))), Options{})
	c := newClient(t)
	fd := c.open(mnt + "/f")
	stopped := make(chan error)
	go func() { stopped <- s.Stop(20 * time.Second) }()
	for range 1000 {
		if _, ok, _ := Find(mnt); !ok {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if got := c.must("readall", fd); got != string(want) {
		t.Error("open file differs after the mount was detached")
	}
	select {
	case err := <-stopped:
		t.Fatalf("stopped with a file open: %v", err)
	default:
	}
	c.must("close", fd)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestStopAborts(t *testing.T) {
	slow := slowReader{make(chan struct{})}
	s, mnt := mount(t, dir("f", file(format.Produced(slow, 5000))), Options{})
	c := newClient(t)
	c.send("pread", c.open(mnt+"/f"), 0, 5000)
	time.AfterFunc(500*time.Millisecond, func() { close(slow.free) })
	if err := s.Stop(100 * time.Millisecond); errors.Is(err, unix.EPERM) {
		t.Skip("only root may end a connection here: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if _, err := c.receive(); !errors.Is(err, syscall.ECONNABORTED) && !errors.Is(err, syscall.ENOTCONN) {
		t.Errorf("reader of an aborted mount: %v", err)
	}
}

// otherServer mounts the fixture from another process.
func otherServer(t *testing.T) (*exec.Cmd, string) {
	t.Helper()
	return otherServerAt(t, t.TempDir())
}

func otherServerAt(t *testing.T, mnt string) (*exec.Cmd, string) {
	t.Helper()
	needFUSE(t)
	cmd := exec.Command("/proc/self/exe", mnt)
	cmd.Env = append(os.Environ(), roleVar+"=server")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if m, ok, _ := Find(mnt); ok {
			m.detach()
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatal(line, err)
	}
	return cmd, mnt
}

func TestStale(t *testing.T) {
	cmd, mnt := otherServer(t)
	newClient(t).must("stat", mnt)
	if stale, err := Stale(mnt); stale || err != nil {
		t.Errorf("a living mount: %v, %v", stale, err)
	}
	if err := Clear(mnt); err == nil {
		t.Error("a living mount was cleared")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(mnt, link); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	for _, path := range []string{mnt, mnt + "/", link} {
		if stale, err := Stale(path); !stale || err != nil {
			t.Errorf("%s, a dead mount: %v, %v", path, stale, err)
		}
	}
	if err := Clear(link); err != nil {
		t.Error(err)
	}
	if stale, err := Stale(mnt); stale || err != nil {
		t.Errorf("no mount: %v, %v", stale, err)
	}
}

// A server that is stopped answers nothing: nothing here may wait for it.
func TestStuckServer(t *testing.T) {
	cmd, mnt := otherServer(t)
	reader := newClient(t)
	fd := reader.open(mnt + "/README.txt")
	toucher := newClient(t)
	mapFD := toucher.open(mnt + "/raw/layers/0/w.raw")
	cmd.Process.Signal(syscall.SIGSTOP)
	reader.send("pread", fd, 0, 100)
	toucher.send("map", mapFD, 0, 4)
	begin := time.Now()
	if stale, err := Stale(mnt); stale || err != nil {
		t.Errorf("a stuck mount: %v, %v", stale, err)
	}
	if users, err := Busy(mnt); err != nil || len(users) != 2 {
		t.Errorf("users: %+v, %v", users, err)
	}
	if err := Unmount(mnt); !errors.Is(err, ErrBusy) {
		t.Errorf("unmounting: %v", err)
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
	cmd.Process.Signal(syscall.SIGCONT)
	if got, err := reader.receive(); got != "hello\n" {
		t.Errorf("after all: %q, %v", got, err)
	}
	if got, err := toucher.receive(); got != "zero" {
		t.Errorf("after all: %q, %v", got, err)
	}
}

func TestForeignMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	mnt := t.TempDir()
	if err := unix.Mount("none", mnt, "tmpfs", 0, "size=4k"); err != nil {
		t.Skip(err)
	}
	defer unix.Unmount(mnt, unix.MNT_DETACH)
	if err := Unmount(mnt); !errors.Is(err, ErrForeign) {
		t.Errorf("unmounting tmpfs: %v", err)
	}
	if stale, err := Stale(mnt); stale || err != nil {
		t.Errorf("tmpfs: %v, %v", stale, err)
	}
	if m, ok, err := Find(mnt); !ok || m.Ours() || err != nil {
		t.Errorf("found %+v, %v", m, err)
	}
}

// What somebody mounted over a mount of ours is not taken away in its place.
func TestCovered(t *testing.T) {
	s, mnt := mount(t, fixture(), Options{})
	if err := unix.Mount("none", mnt, "tmpfs", 0, "size=4k"); err != nil {
		t.Skip(err)
	}
	uncover := sync.OnceFunc(func() { unix.Unmount(mnt, unix.MNT_DETACH) })
	defer uncover()
	if m, ok, err := Find(mnt); !ok || m.Ours() || err != nil {
		t.Errorf("uppermost: %+v, %v", m, err)
	}
	if err := Unmount(mnt); !errors.Is(err, ErrForeign) {
		t.Errorf("unmounting by path: %v", err)
	}
	if err := s.Unmount(); !errors.Is(err, ErrBusy) {
		t.Errorf("unmounting: %v", err)
	}
	if err := s.Detach(); !errors.Is(err, ErrBusy) {
		t.Errorf("detaching: %v", err)
	}
	uncover()
	if err := s.Unmount(); err != nil {
		t.Error(err)
	}
}

func TestMountFails(t *testing.T) {
	needFUSE(t)
	notDir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(notDir, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{notDir, filepath.Join(t.TempDir(), "none"), "/dev/fd/999"} {
		if s, err := Mount(dir, fixture(), Options{}); err == nil {
			s.Stop(0)
			t.Errorf("mounted at %s", dir)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("more than a line: %q", err)
		}
	}
	if helper := fusermount(); helper != "" {
		_, err := attachHelper(helper, notDir+"/none", Options{})
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "fusermount") {
			t.Errorf("the helper's words are lost: %v", err)
		}
	}
}

func TestNothingLeft(t *testing.T) {
	needFUSE(t)
	round := func() int {
		mnt, err := os.MkdirTemp("", "weightfs-test")
		if err != nil {
			t.Fatal(err)
		}
		defer os.Remove(mnt)
		s, err := Mount(mnt, fixture(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Unmount(); err != nil {
			t.Error(err)
		}
		<-s.Done()
		if _, err := Mount(mnt+"/none", fixture(), Options{}); err == nil {
			t.Error("mounted on nothing")
		}
		if m, ok, err := Find(mnt); ok || err != nil {
			t.Errorf("left: %+v, %v", m, err)
		}
		fds, _ := os.ReadDir("/proc/self/fd")
		return len(fds)
	}
	before := round()
	for range 5 {
		if after := round(); after != before {
			t.Fatalf("descriptors: %d, then %d", before, after)
		}
	}
}

// A child of the server must not hold the device, or the mount would outlive a killed server.
func TestDeviceStaysHere(t *testing.T) {
	_, _ = mount(t, fixture(), Options{})
	out, err := exec.Command("ls", "-l", "/proc/self/fd").Output()
	if err != nil || strings.Contains(string(out), "/dev/fuse") {
		t.Errorf("%v: %s", err, out)
	}
}

// volatileDir is another one at each lookup of "now".
type volatileDir struct {
	*memDir
	ttl time.Duration
}

func (d volatileDir) TTL() time.Duration { return d.ttl }

func TestVolatile(t *testing.T) {
	inner := volatileDir{dir("f", text("old")), time.Millisecond}
	top := volatileDir{dir("a", inner), 0}
	_, mnt := mount(t, volatileDir{dir("top", top), 0}, Options{})
	c := newClient(t)
	fd := c.open(mnt + "/top/a/f")
	c.wants(syscall.ENOENT, "stat", mnt+"/top/b")
	c.must("list", mnt+"/top")

	next := volatileDir{dir("f", text("new")), time.Millisecond}
	next.stat.Ino, next.stat.Gen = inner.stat.Ino, 1
	f := next.children["f"].(*memFile)
	f.stat.Ino, f.stat.Gen = inner.children["f"].(*memFile).stat.Ino, 1
	top.set("a", next)
	top.set("b", text("b"))
	time.Sleep(20 * time.Millisecond)
	if got := c.must("readall", c.open(mnt+"/top/a/f")); got != "new" {
		t.Errorf("after the change: %q", got)
	}
	if got := c.must("pread", fd, 0, 10); got != "old" {
		t.Errorf("the open file: %q", got)
	}
	if got := c.must("list", mnt+"/top"); got != "a b" {
		t.Errorf("list: %q", got)
	}
	c.must("stat", mnt+"/top/b")
}

// manyDir has entries that are stored nowhere.
type manyDir struct {
	*memDir
	n int
}

func (d manyDir) List() format.Listing { return d }
func (d manyDir) Len() int             { return d.n }

func (d manyDir) At(i int) format.Dirent {
	return format.Dirent{Name: fmt.Sprint(i), Ino: uint64(1000 + i)}
}

func (d manyDir) Lookup(name string) (format.Node, error) {
	var i int
	if _, err := fmt.Sscan(name, &i); err != nil || i >= d.n {
		return nil, iofs.ErrNotExist
	}
	return &memFile{stat: format.Stat{Ino: uint64(1000 + i), Mode: 0o444}}, nil
}

func TestManyEntries(t *testing.T) {
	const n = 30_000
	_, mnt := mount(t, dir("d", manyDir{dir(), n}), Options{})
	c := newClient(t)
	for range 2 {
		names := strings.Fields(c.must("list", mnt+"/d"))
		if len(names) != n || names[0] != "0" || names[n-1] != fmt.Sprint(n-1) {
			t.Fatalf("%d names", len(names))
		}
	}
}
