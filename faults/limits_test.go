//go:build linux

package faults

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// limited runs the program under a limit of the shell's.
func limited(option string, n int) []string {
	return []string{"sh", "-c", fmt.Sprintf(`ulimit %s %d && exec "$0" "$@"`, option, n)}
}

// sparse is a safetensors file of one tensor of zeros that takes no room on the disk.
func sparse(t *testing.T, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.safetensors")
	header := fmt.Sprintf(`{"w": {"dtype": "U8", "shape": [%d], "data_offsets": [0, %d]}}`, size, size)
	must(t, os.WriteFile(path, append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), 0o644))
	must(t, os.Truncate(path, int64(8+len(header))+size))
	return path
}

// A file that is larger than the address space that the server may have cannot be mapped, and is read
// without.
func TestAddressSpaceTooSmall(t *testing.T) {
	const size = 64 << 30
	path := sparse(t, size)
	s := newServer(t)
	s.run = limited("-v", 8<<20) // KiB
	s.mount(path)
	r := openReader(t, s.at("raw/w.raw"), nil)
	b := make([]byte, 1<<20)
	for _, off := range []int64{0, size / 2, size - int64(len(b))} {
		if n, err := unix.Pread(r.fd, b, off); n != len(b) || err != nil || bytes.Count(b, []byte{0}) != n {
			t.Errorf("at %d: %d bytes, %v", off, n, err)
		}
	}
	r.close()
	s.umount()
}

// The server gets no more address space, while it is read by many. Whether it can go on or not, readers
// get the right bytes or an error, the log has the runtime's last words, and the place can be used again.
func TestAddressSpaceEnds(t *testing.T) {
	c := newCheckpoint(t, t.TempDir())
	want := contents(t, c.dir, append(views("a"), spanning...)...)
	s := newServer(t)
	s.mount(c.dir)
	list := many(t, s, want, 60)
	crowd := keepReading(list)
	crowd.reading(t, 50)
	now := uint64(s.status("VmSize")) << 10
	must(t, unix.Prlimit(s.pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: now, Max: now}, nil))
	time.Sleep(500 * time.Millisecond)
	crowd.end(t, append(brokenOff, unix.ENOMEM)...)
	for _, r := range list {
		r.close()
	}
	if s.exited(0) {
		if strings.Count(s.logged(), "\n") < 2 { // the words depend on which call it was that failed
			t.Errorf("no last words: %s", s.logged())
		}
		s.run = nil
		s.mount(c.dir)
	}
	wholeFile(t, s.at("raw/a/m.big.raw"), want["raw/a/m.big.raw"])
	s.umount()
}

// memoryGroup puts the server into a control group with a limit, in whichever version there is.
func memoryGroup(t *testing.T, s *server, limit int) (reached func() bool) {
	t.Helper()
	name := fmt.Sprintf("weightfs-faults-%d", os.Getpid())
	dir, file, events := filepath.Join("/sys/fs/cgroup/memory", name), "memory.limit_in_bytes", "memory.failcnt"
	if _, err := os.Stat(filepath.Dir(dir)); err != nil {
		dir, file, events = filepath.Join("/sys/fs/cgroup", name), "memory.max", "memory.events"
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip("no control group for memory: ", err)
	}
	t.Cleanup(func() { eventually(func() bool { return os.Remove(dir) == nil }) })
	if err := os.WriteFile(filepath.Join(dir, file), fmt.Append(nil, limit), 0); err != nil {
		t.Skip("no control group for memory: ", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, s.pid), 0))
	return func() bool {
		b, err := os.ReadFile(filepath.Join(dir, events))
		must(t, err)
		_, max, ok := strings.Cut(string(b), "\nmax ")
		if !ok {
			max = string(b)
		}
		var n int
		fmt.Sscan(max, &n)
		return n > 0
	}
}

// The pages of a shard count as the server's memory where it is limited. They are given back, so that a
// limit far below the checkpoint's size is no reason to end.
func TestMemoryLimit(t *testing.T) {
	needRoot(t)
	const size, limit = 128 << 20, 40 << 20
	path := sparse(t, size)
	s := mount(t, path)
	reached := memoryGroup(t, s, limit)
	list := []*reader{}
	for range 16 {
		r := openReader(t, s.at("raw/w.raw"), make([]byte, size))
		list = append(list, r)
	}
	crowd := keepReading(list)
	quickly(t, "reading to the limit", func() {
		for off := 0; off < size; off += 1 << 20 {
			list[0].read(off, 1<<20)
		}
	})
	if failed := crowd.end(t); len(failed) > 0 {
		t.Errorf("readers got %v", failed)
	}
	if !reached() {
		t.Error("the limit was not reached: the test shows nothing")
	}
	for _, r := range list {
		r.close()
	}
	s.umount()
}

// A thousand files are open at once, in a server that may have 40.
func TestThousandOpenFiles(t *testing.T) {
	c := newCheckpoint(t, t.TempDir())
	want := contents(t, c.dir, append(views("a"), views("b")...)...)
	s := newServer(t)
	s.run = limited("-n", 40)
	s.mount(c.dir)
	wholeFile(t, s.at("raw/a/m.big.raw"), want["raw/a/m.big.raw"])
	before := s.descriptors()
	list := many(t, s, want, 1000)
	for i, r := range list {
		if err := r.read(i*613%len(r.want), min(1000, len(r.want)-i*613%len(r.want))); err != nil {
			t.Fatalf("%s: %v", r.path, err)
		}
	}
	if n := s.descriptors(); n > before+2 {
		t.Errorf("the server has %d descriptors, and had %d", n, before)
	}
	for _, r := range list {
		r.close()
	}
	s.umount()
}

// One file is open ten thousand times. The server keeps something of each, and gives it back.
func TestTenThousandOpens(t *testing.T) {
	const n = 10_000
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	if limit.Cur < n+100 {
		t.Skip("no more than ", limit.Cur, " files may be open here")
	}
	c := newCheckpoint(t, t.TempDir())
	const path = "raw/a/m.big.raw"
	want := contents(t, c.dir, path)
	s := mount(t, c.dir)
	before, descriptors := s.status("RssAnon"), s.descriptors()
	for range 2 {
		list := many(t, s, want, n)
		for _, i := range []int{0, n / 2, n - 1} {
			list[i].drop()
			list[i].whole()
		}
		if grown := s.status("RssAnon") - before; grown > 64<<10 || s.descriptors() > descriptors+2 {
			t.Errorf("the server took %d KiB and has %d descriptors, and had %d", grown, s.descriptors(), descriptors)
		}
		for _, r := range list {
			r.close()
		}
	}
	s.umount()
}

// deflated is a .npz of one array of n bytes, which must be unpacked to be read at random.
func deflated(t *testing.T, n int) (path string, data []byte) {
	t.Helper()
	data = shard("z", 0)
	for len(data) < n {
		data = append(data, data...)
	}
	data = data[:n]
	header := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }", n)
	header += strings.Repeat(" ", 117-len(header)) + "\n"
	npy := append([]byte("\x93NUMPY\x01\x00v\x00"+header), data...)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateHeader(&zip.FileHeader{Name: "w.npy", Method: zip.Deflate, CRC32: crc32.ChecksumIEEE(npy)})
	must(t, err)
	_, err = io.Copy(w, bytes.NewReader(npy))
	must(t, err)
	must(t, z.Close())
	path = filepath.Join(t.TempDir(), "w.npz")
	must(t, os.WriteFile(path, b.Bytes(), 0o644))
	return path, data
}

// The disk of the cache is full. What must be unpacked says so until there is room; the rest is served,
// and nothing is left on that disk.
func TestCacheDiskFull(t *testing.T) {
	needRoot(t)
	path, data := deflated(t, 6<<20)
	cache := t.TempDir()
	must(t, unix.Mount("none", cache, "tmpfs", 0, "size=1m"))
	defer unix.Unmount(cache, unix.MNT_DETACH)
	s := newServer(t)
	s.env = append(s.env, "XDG_CACHE_HOME="+cache)
	s.mount(path)
	r := openReader(t, s.at("raw/w.raw"), data)
	for range 2 {
		if err := r.read(1<<20, 4096); err != unix.ENOSPC {
			t.Errorf("reading what cannot be unpacked: %v, want ENOSPC", err)
		}
	}
	s.wantLog("level=ERROR", "unpacking the", "at offset", "no space left", "tensor=w", "file="+path)
	if f, err := os.ReadFile(s.at("json/w.json")); err != nil || len(f) == 0 {
		t.Error(err)
	}
	if n := usedBlocks(t, cache); n > 8 {
		t.Errorf("%d blocks of the full disk are still in use", n)
	}
	must(t, unix.Mount("none", cache, "tmpfs", unix.MS_REMOUNT, "size=16m"))
	r.whole()
	r.close()
	s.umount()
	if n := usedBlocks(t, cache); n > 16 {
		t.Errorf("%d blocks are in use after the mount has ended", n)
	}
}

func usedBlocks(t *testing.T, dir string) uint64 {
	t.Helper()
	var st unix.Statfs_t
	must(t, unix.Statfs(dir, &st))
	return st.Blocks - st.Bfree
}

// The cache is cleared away under the mount, which is what caches are for. What was unpacked is read on,
// and what is computed is computed. What is to be unpacked has no place any more where the server may write
// nowhere else: that is no fault of the file's permissions, and the log says what it is.
func TestCacheRemoved(t *testing.T) {
	c := newCheckpoint(t, t.TempDir())
	packed, data := deflated(t, 2<<20)
	for name, remove := range map[string]func(dir string) error{
		"removed":    os.RemoveAll,
		"made anew":  func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)) },
		"now a file": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) },
		"unwritable": func(dir string) error { return os.Chmod(dir, 0o500) },
	} {
		t.Run(name, func(t *testing.T) {
			cache := filepath.Join(t.TempDir(), "cache")
			dir := filepath.Join(cache, "weightfs")
			must(t, os.MkdirAll(dir, 0o700))
			want := contents(t, c.dir, "stats/a/m.big.json", "stats/b/m.big.json", "SHA256SUMS")
			plain, before, after := newServer(t), newServer(t), newServer(t)
			for _, s := range []*server{plain, before, after} {
				s.env = append(s.env, "XDG_CACHE_HOME="+cache)
			}
			plain.mount(c.dir)
			before.mount(packed)
			after.mount(packed)
			wholeFile(t, plain.at("stats/a/m.big.json"), want["stats/a/m.big.json"])
			wholeFile(t, before.at("raw/w.raw"), data)
			must(t, remove(dir))
			for path, want := range want {
				wholeFile(t, plain.at(path), want)
			}
			wholeFile(t, before.at("npy/w.npy"), contents(t, packed, "npy/w.npy")["npy/w.npy"])
			if r := openReader(t, after.at("raw/w.raw"), data); r.read(0, 4096) != nil {
				if failed := r.readAll(); failed[unix.EIO] == 0 || len(failed) > 1 {
					t.Errorf("what cannot be unpacked: %v", failed)
				}
				after.wantLog("level=ERROR", "no place to unpack to", dir, "tensor=w", "file="+packed)
				r.close()
			}
			for _, s := range []*server{plain, before, after} {
				s.umount()
			}
		})
	}
}

// A cache that cannot be written at all, or is not there, is no reason to fail.
func TestCacheUnwritable(t *testing.T) {
	c := newCheckpoint(t, t.TempDir())
	for name, make := range map[string]func(t *testing.T) string{
		"full": func(t *testing.T) string {
			needRoot(t)
			dir := t.TempDir()
			must(t, unix.Mount("none", dir, "tmpfs", 0, "size=4k,nr_inodes=1"))
			t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
			return dir
		},
		"a file": func(t *testing.T) string { return c.a },
		"gone":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "not", "there") },
	} {
		t.Run(name, func(t *testing.T) {
			want := contents(t, c.dir, "stats/a/m.big.json", "SHA256SUMS")
			s := newServer(t)
			s.env = append(s.env, "XDG_CACHE_HOME="+make(t))
			s.mount(c.dir)
			for path, want := range want {
				wholeFile(t, s.at(path), want)
			}
			s.umount()
		})
	}
}
