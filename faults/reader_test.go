//go:build linux

package faults

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A reader has a file of the mount open, and knows what its bytes are.
type reader struct {
	t    testing.TB
	path string
	fd   int
	want []byte
}

func openReader(t testing.TB, path string, want []byte) *reader {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	r := &reader{t, path, fd, want}
	t.Cleanup(r.close)
	return r
}

func (r *reader) close() {
	if r.fd >= 0 {
		unix.Close(r.fd)
		r.fd = -1
	}
}

// drop has the kernel forget what it has cached of the file, so that the server is asked again.
func (r *reader) drop() { unix.Fadvise(r.fd, 0, 0, unix.FADV_DONTNEED) }

// read compares n bytes at off. Bytes that differ, or an end before the file's, fail the test; an
// errno is returned, after what came before it.
func (r *reader) read(off, n int) error {
	b := make([]byte, n)
	for n = min(n, len(r.want)-off); n > 0; {
		got, err := unix.Pread(r.fd, b[:n], int64(off))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return err
		case got == 0:
			r.t.Errorf("%s ends at %d of %d", r.path, off, len(r.want))
			return nil
		case !bytes.Equal(b[:got], r.want[off:off+got]):
			r.t.Errorf("%s: the %d bytes at %d differ", r.path, got, off)
		}
		off, n = off+got, n-got
	}
	return nil
}

// readAll reads the whole file piece by piece, and gives the errors that it met.
func (r *reader) readAll() (failed map[error]int) {
	const piece = 128 << 10
	failed = map[error]int{}
	for off := 0; off < len(r.want); off += piece {
		if err := r.read(off, min(piece, len(r.want)-off)); err != nil {
			failed[err]++
		}
	}
	return failed
}

// whole: every byte is there and right.
func (r *reader) whole() {
	r.t.Helper()
	if failed := r.readAll(); len(failed) > 0 {
		r.t.Errorf("%s: %v", r.path, failed)
	}
}

// wantOpen: opening a file of the mount fails so.
func wantOpen(t testing.TB, path string, want error) {
	t.Helper()
	f, err := os.Open(path)
	f.Close()
	if !errors.Is(err, want) {
		t.Errorf("opening %s: %v, want %v", path, err, want)
	}
}

// wholeFile opens a file of the mount and checks every byte.
func wholeFile(t testing.TB, path string, want []byte) {
	t.Helper()
	r := openReader(t, path, want)
	defer r.close()
	r.whole()
}

// Readers read until they are told to stop, each until it meets an error.
type readers struct {
	all  int
	wg   sync.WaitGroup
	stop atomic.Bool
	n    atomic.Int64 // reads that gave the right bytes

	mu     sync.Mutex
	failed map[error]int // by what each ended with
}

// keepReading has each reader read again and again what the kernel has forgotten.
func keepReading(list []*reader) *readers {
	c := &readers{all: len(list), failed: map[error]int{}}
	for i, r := range list {
		c.wg.Go(func() { c.loop(r, i) })
	}
	return c
}

func (c *readers) loop(r *reader, seed int) {
	const piece = 64 << 10
	for i := seed; !c.stop.Load(); i++ {
		off := i * 7919 * 512 % len(r.want)
		if i%8 == 0 {
			r.drop()
		}
		if err := r.read(off, min(piece, len(r.want)-off)); err != nil {
			c.mu.Lock()
			c.failed[err]++
			c.mu.Unlock()
			return
		}
		c.n.Add(1)
		if len(r.want) < piece {
			time.Sleep(time.Millisecond) // the kernel has it all, and the others want a processor
		}
	}
}

// reading waits until there were so many more reads, or all readers have ended.
func (c *readers) reading(t testing.TB, reads int64) {
	t.Helper()
	begin := c.n.Load()
	if !eventually(func() bool { return c.n.Load() >= begin+reads || c.broken() == c.all }) {
		t.Errorf("the readers are stuck\n%s", waits())
	}
}

// broken is how many have met an error.
func (c *readers) broken() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.failed {
		n += m
	}
	return n
}

// end stops the readers: none hangs, and all that failed did so with one of these.
func (c *readers) end(t testing.TB, allowed ...syscall.Errno) map[error]int {
	t.Helper()
	c.stop.Store(true)
	quickly(t, "a reader", c.wg.Wait)
	for err := range c.failed {
		ok := false
		for _, a := range allowed {
			ok = ok || err == error(a)
		}
		if !ok {
			t.Errorf("%d readers got %v", c.failed[err], err)
		}
	}
	return c.failed
}
