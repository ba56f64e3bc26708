//go:build linux

package faults

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A change is what happens to a shard under the mount.
type change struct {
	do    func(path string) error
	reads error // what reads of files that are open may fail with; nil: they go on
	words string
	again int // exit code of the next mount
}

var changes = map[string]change{
	"truncated": {func(p string) error { return os.Truncate(p, 1<<20+100) }, unix.EIO, "changed", 12},
	"emptied":   {func(p string) error { return os.Truncate(p, 0) }, unix.EIO, "changed", 12},
	"extended":  {func(p string) error { return appendTo(p, "more") }, unix.EIO, "changed", 12},
	"rewritten": {func(p string) error { return rewrite(p, shard("a", 1), padAt) }, unix.EIO, "changed", 0},
	"one byte":  {func(p string) error { return rewrite(p, shard("a", 1), int64(len(shard("a", 1))-1)) }, unix.EIO, "changed", 0},
	"replaced":  {func(p string) error { return replace(p, shard("a", 1)) }, nil, "replaced", 0},
	"deleted":   {os.Remove, nil, "removed", 13},
	"fifo":      {func(p string) error { return errors.Join(os.Remove(p), unix.Mkfifo(p, 0o644)) }, nil, "replaced", 12},
	"directory": {func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o755)) }, nil, "replaced", 12},
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// One file of two is changed under a mount: who has it open gets old bytes or an error, who opens it is
// told, the other file is served as before, and the next mount shows what is there.
func TestShardChanges(t *testing.T) {
	ours, others := views("a"), views("b")
	for name, tt := range changes {
		t.Run(name, func(t *testing.T) {
			c := newCheckpoint(t, t.TempDir())
			want := contents(t, c.dir, slices.Concat(ours, others, spanning)...)
			s := mount(t, c.dir)
			var open []*reader
			for _, path := range slices.Concat(ours, spanning) {
				r := openReader(t, s.at(path), want[path])
				if path != "SHA256SUMS" && r.read(0, 4096) != nil {
					t.Fatal(path)
				}
				open = append(open, r)
			}
			time.Sleep(10 * time.Millisecond) // the file's time has the grain of the kernel's tick
			must(t, tt.do(c.a))

			for _, path := range slices.Concat(ours, spanning) {
				wantOpen(t, s.at(path), unix.ESTALE)
			}
			checkOpen(t, open, tt.reads)
			for _, path := range others {
				wholeFile(t, s.at(path), want[path])
			}
			s.wantLog("level=ERROR", c.a, tt.words, "tensor=a.m.big")
			if tt.reads != nil {
				s.wantFault(c.a, "a.m.big", "changed in place")
			}
			if n := strings.Count(s.logged(), "level=ERROR"); n > 8 {
				t.Errorf("%d lines for one shard:\n%s", n, s.logged())
			}
			for _, r := range open {
				r.close()
			}
			s.umount()
			checkNextMount(t, s, c, tt.again)
		})
	}
}

func checkOpen(t *testing.T, open []*reader, allowed error) {
	t.Helper()
	for _, r := range open {
		r.drop()
		failed := r.readAll()
		n := failed[allowed]
		delete(failed, allowed)
		if len(failed) > 0 {
			t.Errorf("%s: %v", r.path, failed)
		}
		if strings.Contains(r.path, "/raw/") && allowed != nil && n == 0 {
			t.Errorf("%s: no read failed", r.path)
		}
	}
}

func checkNextMount(t *testing.T, s *server, c *checkpoint, code int) {
	t.Helper()
	if code != 0 {
		if out, got := s.command("mount", c.dir, s.dir); got != code {
			t.Errorf("next mount: exit code %d, want %d: %s", got, code, out)
		}
		return
	}
	s.mount(c.dir)
	for path, want := range contents(t, c.dir, views("a")...) {
		wholeFile(t, s.at(path), want)
	}
	s.umount()
}

// The log has one line for what happened, whichever view it was read by, and that names the tensor.
func TestFaultIsNamed(t *testing.T) {
	c := newCheckpoint(t, t.TempDir())
	for path, want := range map[string]struct {
		tensor string
		off    int // in the file of the mount
	}{
		"raw/a/m.big.raw":             {"a.m.big", 1 << 20},
		"npy/a/m.big.npy":             {"a.m.big", 1 << 20},
		"f32/a/m.half.npy":            {"a.m.half", 1 << 20},
		"rows/a/m.cube/1.npy":         {"a.m.cube", 4096},
		"stats/a/m.big.json":          {"a.m.big", 0},
		"parts/a.safetensors":         {"a.m.cube", bigBytes + 1<<16},
		"assembled/model.safetensors": {"a.m.half", 2*(bigBytes+cubeBytes) + 1<<16},
	} {
		t.Run(filepath.Dir(path), func(t *testing.T) {
			s := mount(t, c.dir)
			r := openReader(t, s.at(path), nil)
			time.Sleep(10 * time.Millisecond)
			must(t, rewrite(c.a, shard("a", 0), padAt))
			if _, err := unix.Pread(r.fd, make([]byte, 4096), int64(want.off)); err != unix.EIO {
				t.Errorf("a read: %v, want EIO", err)
			}
			s.wantFault(c.a, want.tensor, "changed in place")
			if n := strings.Count(s.logged(), "level=ERROR"); n != 1 {
				t.Errorf("%d lines:\n%s", n, s.logged())
			}
			r.close()
			s.umount()
		})
	}
}

// Files beside the shards are watched as shards are.
func TestSideFileChanges(t *testing.T) {
	c := newCheckpoint(t, t.TempDir())
	s := mount(t, c.dir)
	r := openReader(t, s.at("assembled/config.json"), []byte("{}\n"))
	r.whole()
	must(t, replace(filepath.Join(c.dir, "config.json"), []byte("[1]\n")))
	wantOpen(t, s.at("assembled/config.json"), unix.ESTALE)
	r.drop()
	r.whole()
	s.wantLog("config.json", "replaced")
	r.close()
	s.umount()
}

// Readers are at it while a file is replaced: each read gives old bytes, each open too, or ESTALE. New
// bytes are never seen.
func TestReplacedWhileRead(t *testing.T) {
	c := newCheckpoint(t, t.TempDir())
	want := contents(t, c.dir, slices.Concat(views("a"), spanning[:1])...)
	s := mount(t, c.dir)
	var list []*reader
	for _, path := range slices.Sorted(keys(want)) {
		list = append(list, openReader(t, s.at(path), want[path]))
	}
	crowd := keepReading(list)
	crowd.reading(t, 100)
	opened, stop := openAgain(t, s, want)
	if !eventually(func() bool { return opened.Load() > 20 }) { // once it is replaced, no open succeeds
		t.Error("the openers are stuck")
	}
	for version := range byte(5) {
		must(t, replace(c.a, shard("a", version+1)))
		time.Sleep(5 * time.Millisecond)
	}
	crowd.reading(t, 100)
	stop()
	if failed := crowd.end(t); len(failed) > 0 {
		t.Errorf("readers failed: %v", failed)
	}
	for _, r := range list {
		r.close()
	}
	s.umount()
}

func keys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// openAgain opens and reads files until it is stopped. An open may say ESTALE, and nothing else.
func openAgain(t *testing.T, s *server, want map[string][]byte) (opened *atomic.Int64, stop func()) {
	opened = &atomic.Int64{}
	var wg sync.WaitGroup
	var ended atomic.Bool
	for path, bytes := range want {
		wg.Go(func() {
			for !ended.Load() {
				fd, err := unix.Open(s.at(path), unix.O_RDONLY, 0)
				if err != nil {
					if err != unix.ESTALE && err != unix.EINTR {
						t.Errorf("opening %s: %v", path, err)
					}
					continue
				}
				opened.Add(1)
				(&reader{t, path, fd, bytes}).whole()
				unix.Close(fd)
			}
		})
	}
	return opened, func() { ended.Store(true); quickly(t, "an opener", wg.Wait) }
}

// A file is rewritten in place while it is read. From its first written byte on, which lies where
// nobody reads, a read gives old bytes or EIO; a mixture is never seen.
func TestRewrittenWhileRead(t *testing.T) {
	c := newCheckpoint(t, t.TempDir())
	want := contents(t, c.dir, views("a")...)
	delete(want, "parts/a.safetensors") // it holds the padding
	s := mount(t, c.dir)
	var list []*reader
	for _, path := range slices.Sorted(keys(want)) {
		for range 2 {
			list = append(list, openReader(t, s.at(path), want[path]))
		}
	}
	crowd := keepReading(list)
	crowd.reading(t, 100)
	changed := shard("a", 0xff)
	f, err := os.OpenFile(c.a, os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	const step = 16 << 10
	for off := padAt; off < len(changed); off += step {
		_, err := f.WriteAt(changed[off:min(off+step, len(changed))], int64(off))
		must(t, err)
		if off == padAt {
			time.Sleep(200 * time.Millisecond) // what was asked for before is answered
		}
	}
	time.Sleep(100 * time.Millisecond)
	if failed := crowd.end(t, unix.EIO); failed[unix.EIO] == 0 {
		t.Error("no reader was told")
	}
	s.wantLog(c.a, "changed in place")
	for _, r := range list {
		r.close()
	}
	s.umount()
}

// What is deflated is unpacked once. Who reads it before its file is rewritten has the old bytes for as
// long as the file is open; who comes later gets EIO, not what the unpacking makes of a mixture.
func TestDeflatedRewritten(t *testing.T) {
	path, data := deflated(t, 2<<20)
	for _, before := range []bool{true, false} {
		s := mount(t, path)
		r := openReader(t, s.at("raw/w.raw"), data)
		if before {
			r.whole()
		}
		file, err := os.ReadFile(path)
		must(t, err)
		changed := slices.Clone(file)
		for i := len(file) / 2; i < len(file)/2+1000; i++ {
			changed[i] ^= 0xff
		}
		time.Sleep(10 * time.Millisecond)
		must(t, rewrite(path, changed, 0))
		r.drop()
		switch err := r.read(1<<20, 1<<20); {
		case before && err != nil:
			t.Errorf("what was unpacked in time: %v", err)
		case !before && err != unix.EIO:
			t.Errorf("what was not unpacked in time: %v, want EIO", err)
		}
		wantOpen(t, s.at("raw/w.raw"), unix.ESTALE)
		s.wantLog("level=ERROR", path, "changed")
		r.close()
		s.umount()
		must(t, os.WriteFile(path, file, 0o644))
	}
}
