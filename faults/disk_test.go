//go:build linux

package faults

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// A disk is a file system of the test's own, served by a process of its own, that shows the files of
// a directory. It can be told to fail.
type disk struct {
	t   testing.TB
	dir string
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newDisk(t testing.TB, files string, direct bool) *disk {
	t.Helper()
	needFUSE(t)
	d := &disk{t: t, dir: t.TempDir()}
	kind := "cached"
	if direct {
		kind = "direct"
	}
	d.cmd = exec.Command("/proc/self/exe", d.dir, files, kind)
	d.cmd.Env = append(os.Environ(), roleVar+"=disk", "GORACE=atexit_sleep_ms=0")
	d.cmd.Stderr = os.Stderr
	in, err := d.cmd.StdinPipe()
	must(t, err)
	out, err := d.cmd.StdoutPipe()
	must(t, err)
	must(t, d.cmd.Start())
	d.in, d.out = in, bufio.NewReader(out)
	t.Cleanup(d.remove)
	d.answer()
	return d
}

func (d *disk) answer() {
	d.t.Helper()
	quickly(d.t, "the disk", func() {
		if line, err := d.out.ReadString('\n'); line != "ready\n" {
			d.t.Errorf("the disk says %q, %v", line, err)
		}
	})
}

// tell changes how the disk behaves: ok, eio (data cannot be read), dead (nothing can), stall (data is
// not read until it is ok again).
func (d *disk) tell(mode string) {
	d.t.Helper()
	fmt.Fprintln(d.in, mode)
	d.answer()
}

func (d *disk) detach() error {
	if os.Geteuid() == 0 {
		return unix.Unmount(d.dir, unix.MNT_DETACH)
	}
	return exec.Command("fusermount3", "-uz", d.dir).Run()
}

func (d *disk) remove() {
	d.detach()
	d.in.Close()
	d.cmd.Process.Kill()
	d.cmd.Wait()
}

// The disk's own process.

type diskState struct {
	mu   sync.Mutex
	mode atomic.Pointer[string]
	wake chan struct{}
}

func (s *diskState) set(mode string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode.Store(&mode)
	close(s.wake)
	s.wake = make(chan struct{})
}

// errno is what a request meets, after its wait.
func (s *diskState) errno(data bool) syscall.Errno {
	for {
		s.mu.Lock()
		mode, wake := *s.mode.Load(), s.wake
		s.mu.Unlock()
		switch {
		case mode == "dead", mode == "eio" && data:
			return syscall.EIO
		case mode == "stall" && data:
			<-wake
		default:
			return 0
		}
	}
}

type diskFile struct {
	fusefs.Inode
	state  *diskState
	path   string
	direct bool
}

func (f *diskFile) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	var st syscall.Stat_t
	if err := syscall.Stat(f.path, &st); err != nil {
		return fusefs.ToErrno(err)
	}
	out.FromStat(&st)
	return f.state.errno(false)
}

func (f *diskFile) Open(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if f.direct {
		return nil, fuse.FOPEN_DIRECT_IO, 0
	}
	return nil, 0, 0
}

func (f *diskFile) Read(_ context.Context, _ fusefs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if errno := f.state.errno(true); errno != 0 {
		return nil, errno
	}
	file, err := os.Open(f.path)
	if err != nil {
		return nil, fusefs.ToErrno(err)
	}
	defer file.Close()
	n, err := file.ReadAt(dest, off)
	if err != nil && err != io.EOF {
		return nil, fusefs.ToErrno(err)
	}
	return fuse.ReadResultData(dest[:n]), 0
}

type diskRoot struct {
	fusefs.Inode
	files  string
	state  *diskState
	direct bool
}

func (r *diskRoot) OnAdd(ctx context.Context) {
	entries, _ := os.ReadDir(r.files)
	for _, e := range entries {
		f := &diskFile{state: r.state, path: filepath.Join(r.files, e.Name()), direct: r.direct}
		r.AddChild(e.Name(), r.NewPersistentInode(ctx, f, fusefs.StableAttr{}), false)
	}
}

func serveDisk(dir, files string, direct bool) {
	state := &diskState{wake: make(chan struct{})}
	state.set("ok")
	none := time.Duration(0)
	s, err := fusefs.Mount(dir, &diskRoot{files: files, state: state, direct: direct}, &fusefs.Options{
		AttrTimeout: &none, EntryTimeout: &none,
		MountOptions: fuse.MountOptions{DirectMount: true, Name: "faulty", FsName: "faulty", MaxBackground: 256},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		state.set(in.Text())
		fmt.Println("ready")
	}
	s.Unmount()
}

// A disk fails while a checkpoint of it is mounted: who reads what is on it gets EIO, and the right
// bytes when it is well again. Files on another disk are read all the while.
func TestDiskFails(t *testing.T) {
	for name, direct := range map[string]bool{"mapped": false, "not to be mapped": true} {
		t.Run(name, func(t *testing.T) {
			files, dir := t.TempDir(), t.TempDir()
			c := newCheckpoint(t, files)
			want := contents(t, files, slices.Concat(views("a"), views("b"))...)
			d := newDisk(t, files, direct)
			must(t, os.Symlink(filepath.Join(d.dir, filepath.Base(c.a)), filepath.Join(dir, filepath.Base(c.a))))
			must(t, os.Symlink(c.b, filepath.Join(dir, filepath.Base(c.b))))
			s := mount(t, dir)
			for _, mode := range []string{"eio", "dead"} {
				list := openAll(t, s, want, views("a"))
				d.tell(mode)
				failing(t, list[:1], mode)
				s.wantFault(filepath.Join(dir, filepath.Base(c.a)), "a.m.big", "input/output error")
				failing(t, list[1:], mode)
				for _, path := range views("b") {
					wholeFile(t, s.at(path), want[path])
				}
				if mode == "dead" {
					wantOpen(t, s.at("raw/a/m.big.raw"), unix.ESTALE)
				}
				d.tell("ok")
				for _, r := range list {
					r.drop()
					r.whole()
					r.close()
				}
			}
			s.umount()
		})
	}
}

func openAll(t *testing.T, s *server, want map[string][]byte, paths []string) (list []*reader) {
	t.Helper()
	for _, path := range paths {
		r := openReader(t, s.at(path), want[path])
		r.drop()
		list = append(list, r)
	}
	return list
}

// failing: reads give EIO or, of what is cached, the right bytes.
func failing(t *testing.T, list []*reader, mode string) {
	t.Helper()
	for _, r := range list {
		failed := r.readAll()
		n := failed[unix.EIO]
		delete(failed, unix.EIO)
		if len(failed) > 0 || n == 0 && filepath.Ext(r.path) == ".raw" {
			t.Errorf("%s, disk %s: %d reads gave EIO, others %v", r.path, mode, n, failed)
		}
	}
}

// The disk's own server is killed, and so answers ENOTCONN. That would look as if weightfs had died.
func TestDiskServerDies(t *testing.T) {
	files := t.TempDir()
	c := newCheckpoint(t, files)
	want := contents(t, files, views("a")...)
	d := newDisk(t, files, false)
	s := mount(t, d.dir)
	list := openAll(t, s, want, views("a"))
	must(t, d.cmd.Process.Kill())
	d.cmd.Wait()
	failing(t, list, "killed")
	wantOpen(t, s.at(views("a")[0]), unix.ESTALE)
	s.wantFault(filepath.Join(d.dir, filepath.Base(c.a)), "a.m.big", "not connected")
	wholeFile(t, s.at("metadata.json"), []byte("{}\n"))
	for _, r := range list {
		r.close()
	}
	s.umount()
}

// The file system of the source is unmounted lazily: what is open can be read on, and the next open is
// told.
func TestSourceUnmounted(t *testing.T) {
	for name, unmount := range map[string]func(t *testing.T) (string, func() error){
		"tmpfs": func(t *testing.T) (string, func() error) {
			needRoot(t)
			dir := t.TempDir()
			must(t, unix.Mount("none", dir, "tmpfs", 0, "size=32m"))
			t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
			newCheckpoint(t, dir)
			return dir, func() error { return unix.Unmount(dir, unix.MNT_DETACH) }
		},
		"FUSE": func(t *testing.T) (string, func() error) {
			files := t.TempDir()
			newCheckpoint(t, files)
			d := newDisk(t, files, false)
			return d.dir, d.detach
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, detach := unmount(t)
			want := contents(t, dir, slices.Concat(views("a"), spanning)...)
			s := mount(t, dir)
			list := openAll(t, s, want, slices.Concat(views("a"), spanning))
			if err := unix.Unmount(dir, 0); err != unix.EBUSY && err != unix.EPERM {
				t.Errorf("unmounting the source: %v", err)
			}
			must(t, detach())
			for _, r := range list {
				wantOpen(t, r.path, unix.ESTALE)
				r.drop()
				r.whole()
				r.close()
			}
			s.wantLog("level=ERROR", dir, "no such file")
			s.umount()
		})
	}
}

// A disk stops answering. Who reads from it waits, and nobody else; the mount can be ended, and who
// waits then gets an error.
func TestDiskStalls(t *testing.T) {
	for _, procs := range []string{"1", "16"} {
		t.Run("GOMAXPROCS="+procs, func(t *testing.T) {
			files, dir := t.TempDir(), t.TempDir()
			c := newCheckpoint(t, files)
			want := contents(t, files, slices.Concat(views("a"), views("b"))...)
			d := newDisk(t, files, false)
			must(t, os.Symlink(filepath.Join(d.dir, filepath.Base(c.a)), filepath.Join(dir, filepath.Base(c.a))))
			must(t, os.Symlink(c.b, filepath.Join(dir, filepath.Base(c.b))))
			s := newServer(t)
			s.env = append(s.env, "GOMAXPROCS="+procs)
			s.mount(dir, "--grace=1s")
			var list []*reader
			for range 20 {
				list = append(list, openAll(t, s, want, views("a"))...)
			}
			d.tell("stall")
			crowd := keepReading(list)
			time.Sleep(500 * time.Millisecond)
			quickly(t, "a reader of the other disk", func() {
				for _, path := range views("b") {
					wholeFile(t, s.at(path), want[path])
				}
			})
			d.tell("ok")
			crowd.reading(t, 100)
			d.tell("stall")
			time.Sleep(100 * time.Millisecond)
			s.signal(unix.SIGTERM)
			crowd.end(t, unix.ECONNABORTED, unix.ENOTCONN, unix.EIO)
			for _, r := range list {
				r.close()
			}
			d.tell("ok") // a thread that waits for a disk cannot be killed
			s.gone(patience)
		})
	}
}
