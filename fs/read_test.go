//go:build linux

package fs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"weightfs/format"
	"weightfs/format/elements"
)

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	r.Read(b)
	return b
}

func openShard(t testing.TB, b []byte) *format.Shard {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shard")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := format.OpenShard("shard", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// mixed is a file of every kind of segment, long and short, and its bytes.
func mixed(t testing.TB) (*memFile, []byte) {
	shard := noise(3 << 20)
	s := openShard(t, shard)
	made := noise(100_000)
	lit := noise(20_000)
	segs := []format.Segment{format.Literal(lit[:128]), format.Range(s, 7, 1_500_001)}
	for i := range 3000 { // more than writev(2) takes
		segs = append(segs, format.Range(s, int64(i), 1+int64(i%90)), format.Literal(lit[i:i+1+i%60]))
	}
	segs = append(segs, format.Produced(bytes.NewReader(made), int64(len(made))), format.Literal(lit), format.Range(s, 1, 4096), format.Range(s, 9, 4095))
	f := file(segs...)
	want := make([]byte, f.Size())
	if _, err := (format.ContentReader{Content: f}).ReadAt(want, 0); err != nil {
		t.Fatal(err)
	}
	return f, want
}

func TestRead(t *testing.T) {
	f, want := mixed(t)
	_, mnt := mount(t, dir("f", f), Options{})
	c := newClient(t)
	fd := c.open(mnt + "/f")
	if got := c.must("readall", fd); got != string(want) {
		t.Fatalf("whole file differs (%d bytes of %d)", len(got), len(want))
	}
	if got := c.must("map", fd, 0, len(want)); got != string(want) {
		t.Error("map differs")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		if i%10 == 0 {
			c.must("drop", fd)
		}
		off, n := r.IntN(len(want)+100), 1+r.IntN(1<<r.IntN(21))
		got := c.must("pread", fd, off, n)
		if exp := want[min(off, len(want)):min(off+n, len(want))]; got != string(exp) {
			t.Fatalf("%d bytes at %d: got %d bytes that differ", n, off, len(got))
		}
	}
}

// The handler itself, without a kernel: every reply is what was asked for, in a vector that
// writev(2) takes.
func TestReply(t *testing.T) {
	f, want := mixed(t)
	h := &handle{tree: &tree{}, file: f, content: f, size: f.Size()}
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		off, n := r.IntN(len(want)), 1+r.IntN(1<<r.IntN(21))
		res, errno := h.Read(context.Background(), make([]byte, n), int64(off))
		if errno != 0 {
			t.Fatal(errno)
		}
		exp := want[off:min(off+n, len(want))]
		slices, _ := res.(*reply).Slices()
		if got := bytes.Join(slices, nil); !bytes.Equal(got, exp) || res.Size() != len(exp) {
			t.Fatalf("%d bytes at %d: got %d that differ", n, off, len(got))
		}
		if len(slices) > 1000 {
			t.Fatalf("%d bytes at %d: %d slices", n, off, len(slices))
		}
	}
	if res, errno := h.Read(context.Background(), make([]byte, 10), f.Size()+5); errno != 0 || res.Size() != 0 {
		t.Errorf("behind the end: %d, %v", res.Size(), errno)
	}
}

// A whole page of tiny segments must not make a longer vector than writev(2) takes.
func TestReplyWorstVector(t *testing.T) {
	s := openShard(t, noise(1<<20))
	var segs []format.Segment
	for i := range 600 {
		segs = append(segs, format.Literal([]byte("x")), format.Range(s, int64(i), minSlice))
	}
	f := file(segs...)
	h := &handle{tree: &tree{}, file: f, content: f, size: f.Size()}
	res, errno := h.Read(context.Background(), make([]byte, maxRequest), 0)
	if errno != 0 || res.Size() != maxRequest {
		t.Fatal(res, errno)
	}
	if n := len(res.(*reply).slices); n > 1022 {
		t.Errorf("%d slices", n)
	}
}

// A file that mmap(2) refuses is read by pread. sysfs has one.
func TestUnmappable(t *testing.T) {
	const path = "/sys/kernel/btf/vmlinux"
	s, err := format.OpenShard("vmlinux", path)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { s.Close() })
	if s.Slice(0, 1) != nil {
		t.Skip("this kernel maps ", path)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, mnt := mount(t, dir("f", shardFile(s)), Options{})
	c := newClient(t)
	if got := c.must("readall", c.open(mnt+"/f")); got != string(want) {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

func TestShardChanged(t *testing.T) {
	const size = 1 << 20
	old := noise(size)
	for name, tt := range map[string]struct {
		change func(path string) error
		read   error // of files that are open already
	}{
		"truncated": {func(p string) error { return os.Truncate(p, size/2) }, syscall.EIO},
		"emptied":   {func(p string) error { return os.Truncate(p, 0) }, syscall.EIO},
		"extended":  {func(p string) error { return os.Truncate(p, size+1) }, syscall.EIO},
		"rewritten": {func(p string) error { return os.WriteFile(p, noise(size), 0o644) }, syscall.EIO},
		"replaced": {func(p string) error {
			return errors.Join(os.WriteFile(p+".new", noise(size), 0o644), os.Rename(p+".new", p))
		}, nil},
		"deleted": {os.Remove, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShard(t, old)
			logged := &logBuffer{}
			_, mnt := mount(t, dir("w", shardFile(s), "v", shardFile(s), "ok", text("ok")), Options{Logger: slog.New(slog.NewTextHandler(logged, nil))})
			c := newClient(t)
			fd := c.open(mnt + "/w")
			if got := c.must("pread", fd, 0, 4096); got != string(old[:4096]) {
				t.Fatal("read before the change differs")
			}
			time.Sleep(10 * time.Millisecond) // mtime has the grain of the kernel's clock tick
			if err := tt.change(s.Path); err != nil {
				t.Fatal(err)
			}
			c.wants(syscall.ESTALE, "open", mnt+"/w")
			c.wants(syscall.ESTALE, "open", mnt+"/v")
			for range 3 {
				c.must("drop", fd)
				got, err := c.call("pread", fd, size-8192, 8192)
				if !errors.Is(err, tt.read) || err == nil && got != string(old[size-8192:]) {
					t.Fatalf("read after the change: %d bytes, %v; want error %v", len(got), err, tt.read)
				}
			}
			if n := strings.Count(logged.String(), "level=ERROR"); n == 0 || n > 2 {
				t.Errorf("%d lines for one shard: %s", n, logged)
			}
			if got := c.must("readall", c.open(mnt+"/ok")); got != "ok" {
				t.Error("the mount is gone")
			}
		})
	}
}

// A shard cut between the check and the copy is EIO for the reader, and nothing for the server.
func TestCutDuringCopy(t *testing.T) {
	s := openShard(t, noise(1<<20))
	s.Slice(0, 1)
	lost := &lostFile{shardFile(s)}
	_, mnt := mount(t, dir("w", lost, "ok", text("ok")), Options{})
	if err := os.Truncate(s.Path, 4096); err != nil {
		t.Fatal(err)
	}
	c := newClient(t)
	fd := c.open(mnt + "/w")
	c.wants(syscall.EIO, "pread", fd, 8192, 1<<20)
	c.wants(syscall.EIO, "readall", fd)
	if got := c.must("readall", c.open(mnt+"/ok")); got != "ok" {
		t.Error("the mount is gone")
	}
}

// lostFile gives the map itself as a literal, so that no check stands before the copy.
type lostFile struct{ *tensorFile }

func (f *lostFile) Open() (format.Content, error) {
	s := f.tensor.Shard
	return file(format.Segment{Len: s.Size(), Data: s.Slice(0, s.Size())}), nil
}

type slowReader struct{ free chan struct{} }

func (r slowReader) ReadAt(p []byte, _ int64) (int, error) {
	<-r.free
	clear(p)
	return len(p), nil
}

func TestSlowProducer(t *testing.T) {
	slow := slowReader{make(chan struct{})}
	fast := noise(1 << 20)
	root := dir("fast", file(format.Literal(fast)))
	const many = 24
	for i := range many {
		root.set(fmt.Sprint("slow", i), file(format.Produced(slow, 5000)))
	}
	_, mnt := mount(t, root, Options{})
	var waiting []*client
	for i := range many {
		c := newClient(t)
		c.send("pread", c.open(mnt+fmt.Sprint("/slow", i)), 0, 5000)
		waiting = append(waiting, c)
	}
	c := newClient(t)
	begin := time.Now()
	if got := c.must("readall", c.open(mnt+"/fast")); got != string(fast) {
		t.Error("fast file differs")
	}
	if d := time.Since(begin); d > 2*time.Second {
		t.Errorf("a fast read took %v beside slow ones", d)
	}
	close(slow.free)
	for _, c := range waiting {
		if got, err := c.receive(); err != nil || len(got) != 5000 {
			t.Errorf("slow read: %d bytes, %v", len(got), err)
		}
	}
}

type brokenReader struct{ err error }

func (r brokenReader) ReadAt(p []byte, _ int64) (int, error) {
	if r.err == nil {
		panic("broken")
	}
	return len(p) / 2, r.err
}

func TestErrors(t *testing.T) {
	root := dir("full", file(format.Produced(brokenReader{fmt.Errorf("spool: %w", syscall.ENOSPC)}, 5000)),
		"short", file(format.Produced(brokenReader{io.EOF}, 5000)),
		"panics", file(format.Produced(brokenReader{}, 5000)),
		"refuses", file(format.Literal(noise(10))), "ok", text("ok"))
	root.children["refuses"].(*memFile).openErr = &os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}
	_, mnt := mount(t, root, Options{Logger: slog.New(slog.DiscardHandler)})
	c := newClient(t)
	for name, want := range map[string]error{"full": syscall.ENOSPC, "short": syscall.EIO, "panics": syscall.EIO} {
		c.wants(want, "readall", c.open(mnt+"/"+name))
	}
	c.wants(syscall.EMFILE, "open", mnt+"/refuses")
	if got := c.must("readall", c.open(mnt+"/ok")); got != "ok" {
		t.Error("the mount is gone")
	}
}

func TestErrnoOf(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want syscall.Errno
	}{
		{nil, 0},
		{fmt.Errorf("x: %w", format.ErrStale), syscall.ESTALE},
		{fmt.Errorf("x: %w", format.ErrChanged), syscall.EIO},
		{&os.PathError{Op: "read", Path: "x", Err: syscall.ENOSPC}, syscall.ENOSPC},
		{fmt.Errorf("x: %w", syscall.ENOSYS), syscall.EIO},
		{fmt.Errorf("x: %w: %w", elements.ErrNoPlace, syscall.EACCES), syscall.EIO},
		{fmt.Errorf("x: %w", syscall.ENOTCONN), syscall.EIO},
		{os.ErrNotExist, syscall.ENOENT},
		{io.ErrUnexpectedEOF, syscall.EIO},
	} {
		if got := errnoOf(tt.err); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.err, got, tt.want)
		}
	}
}

type counter struct{ opened, failed, closed, read atomic.Int64 }

func (c *counter) Closed(format.File) { c.closed.Add(1) }

func (c *counter) Opened(_ format.File, errno syscall.Errno) {
	c.opened.Add(1)
	if errno != 0 {
		c.failed.Add(1)
	}
}

func (c *counter) Read(_ format.File, n int, took time.Duration, _ syscall.Errno) {
	if took > 0 {
		c.read.Add(int64(n))
	}
}

func TestObserver(t *testing.T) {
	n := &counter{}
	root := dir("ok", file(format.Literal(noise(10_000))), "refuses", text("x"))
	root.children["refuses"].(*memFile).openErr = syscall.EACCES
	s, mnt := mount(t, root, Options{Observer: n, Logger: slog.New(slog.DiscardHandler)})
	c := newClient(t)
	c.must("readall", c.open(mnt+"/ok"))
	c.wants(syscall.EACCES, "open", mnt+"/refuses")
	c.close()
	for range 1000 { // close(2) does not wait until we know of it, and what is on its way is lost with the mount
		if n.closed.Load() > 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.Stop(0)
	if n.opened.Load() != 2 || n.failed.Load() != 1 || n.closed.Load() != 1 || n.read.Load() != 10_000 {
		t.Errorf("opened %d, failed %d, closed %d, read %d", n.opened.Load(), n.failed.Load(), n.closed.Load(), n.read.Load())
	}
}

// With one thread for Go code, a handler that waits in the kernel must not stop the others.
func TestOneProcessor(t *testing.T) {
	if os.Getenv("GOMAXPROCS") == "1" {
		t.Skip("is the inner run")
	}
	needFUSE(t)
	cmd := exec.Command("/proc/self/exe", "-test.run=^(TestTree|TestRead|TestSlowProducer|TestCutDuringCopy)$")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// Of the buffers that go-fuse keeps, those of long requests take no memory.
func TestGiveBack(t *testing.T) {
	for _, tt := range []struct{ off, n, zeros int }{
		{0, maxRequest, maxRequest}, {0, maxRequest - 4096, maxRequest - 4096}, {1, 1<<20 - 1, 1<<20 - 4096}, {0, usualRead, 0}, {0, usualRead + 1, usualRead},
	} {
		buf := bytes.Repeat([]byte{1}, 1<<20)
		giveBack(buf[tt.off : tt.off+tt.n])
		if n := bytes.Count(buf, []byte{0}); os.Getpagesize() == 4096 && n != tt.zeros {
			t.Errorf("%d bytes at %d: %d are given back, want %d", tt.n, tt.off, n, tt.zeros)
		}
	}
}

// A buffer of the full length that was filled is kept for the next request; one that a map answered in place
// of is not, since the collector may have filled it: of a server that may have 40 MB they took the most.
func TestFilledBuffersAreKept(t *testing.T) {
	s := openShard(t, noise(2*maxRequest))
	made := noise(2 * maxRequest)
	for name, tt := range map[string]struct {
		file *memFile
		n    int
		kept bool
	}{
		"produced":          {file(format.Produced(bytes.NewReader(made), int64(len(made)))), maxRequest, true},
		"produced, shorter": {file(format.Produced(bytes.NewReader(made), int64(len(made)))), maxRequest - 4096, false},
		"mapped":            {file(format.Range(s, 0, s.Size())), maxRequest, false},
	} {
		h := &handle{tree: &tree{}, file: tt.file, content: tt.file, size: tt.file.Size()}
		buf := bytes.Repeat([]byte{1}, maxRequest+2*os.Getpagesize())
		skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(buf)))) & (os.Getpagesize() - 1)
		buf = buf[skip : skip+tt.n]
		res, errno := h.Read(context.Background(), buf, 0)
		if errno != 0 {
			t.Fatal(errno)
		}
		res.Done()
		if kept := !bytes.Equal(buf, make([]byte, len(buf))); kept != tt.kept {
			t.Errorf("%s: kept %v", name, kept)
		}
	}
}
