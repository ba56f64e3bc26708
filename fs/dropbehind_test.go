//go:build linux

package fs

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"weightfs/format"
)

const mib = 1 << 20

func TestSpans(t *testing.T) {
	const size = 21*mib + 5
	none := span{}
	for name, steps := range map[string][]struct {
		add, whole span
	}{
		"in order": {
			{span{100, 3 * mib}, none}, {span{3 * mib, 4 * mib}, none}, {span{4 * mib, 8*mib - 1}, none},
			{span{8*mib - 1, 9 * mib}, span{4 * mib, 8 * mib}}, {span{9 * mib, size}, span{8 * mib, size}},
		},
		"out of order": {
			{span{6 * mib, 7 * mib}, none}, {span{4 * mib, 5 * mib}, none}, {span{7 * mib, 8 * mib}, none},
			{span{5 * mib, 6 * mib}, span{4 * mib, 8 * mib}}, {span{5 * mib, 6 * mib}, none},
		},
		"from the beginning": {{span{0, 4 * mib}, span{0, 4 * mib}}, {span{20 * mib, size}, span{20 * mib, size}}},
		"twice":              {{span{0, 3 * mib}, none}, {span{0, 3 * mib}, none}, {span{2 * mib, 4 * mib}, span{0, 4 * mib}}},
	} {
		set := new(spanSet)
		for i, step := range steps {
			if got := set.add(step.add, size); got != step.whole && got.end > got.begin {
				t.Errorf("%s, step %d: %v, want %v", name, i, got, step.whole)
			} else if got.end <= got.begin && step.whole != none {
				t.Errorf("%s, step %d: nothing, want %v", name, i, step.whole)
			}
		}
	}
}

// A block is dropped when every byte of it was sent, not before, and as often as that happens.
func TestSpansAgainstABitmap(t *testing.T) {
	const unit = dropBlock / 4
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.IntRange(1, 40).Draw(t, "units")
		sent := make([]bool, units)
		set := new(spanSet)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			begin := rapid.IntRange(0, units-1).Draw(t, "begin")
			end := rapid.IntRange(begin+1, units).Draw(t, "end")
			for i := begin; i < end; i++ {
				sent[i] = true
			}
			var want []int
			for block := 0; block < units; block += 4 {
				b := sent[block:min(block+4, units)]
				if !slices.Contains(b, false) {
					want = append(want, block)
				}
			}
			got := set.add(span{int64(begin) * unit, int64(end) * unit}, int64(units)*unit)
			var dropped []int
			for at := got.begin; at < got.end; at += dropBlock {
				dropped = append(dropped, int(at/unit))
			}
			if !slices.Equal(dropped, want) {
				t.Fatalf("dropped %v, want %v", dropped, want)
			}
			for _, block := range dropped {
				clear(sent[block:min(block+4, units)])
			}
		}
	})
}

func TestSpansAreBounded(t *testing.T) {
	set := new(spanSet)
	for i := range int64(100_000) {
		set.add(span{i * 3 * mib, i*3*mib + 4096}, 1<<40)
		if len(set.spans) > mostSpans {
			t.Fatal(len(set.spans))
		}
	}
}

// cached is how many bytes of a file the kernel has in memory.
func cached(t *testing.T, f *os.File, size int) (n int) {
	t.Helper()
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	page := os.Getpagesize()
	pages := make([]byte, (size+page-1)/page)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(size), uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, p := range pages {
		n += int(p&1) * page
	}
	return n
}

// What a fault reads ahead, and behind, while blocks are dropped stays; it is as much for a large file.
func TestDropBehind(t *testing.T) {
	const size, most = 32 * mib, 16 * mib
	want := noise(size)
	path := filepath.Join(t.TempDir(), "shard")
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil { // what is not on disk yet stays in memory
		t.Fatal(err)
	}
	if unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); cached(t, f, size) > 0 {
		t.Skip("a file system that has all its files in memory")
	}
	shard, err := format.OpenShard("shard", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shard.Close() })
	const cut = 5*mib + 13
	for _, drop := range []bool{false, true} {
		shard.Drop(0, size)
		_, mnt := mount(t, dir("a", file(format.Literal([]byte("header")), format.Range(shard, 0, cut)), "b", file(format.Range(shard, cut, size-cut))),
			Options{DropBehind: drop})
		c := newClient(t)
		for _, part := range []struct {
			path  string
			begin int
			want  []byte
		}{{"/a", 6, want[:cut]}, {"/b", 0, want[cut:]}} {
			fd := c.open(mnt + part.path)
			for at := 0; at < len(part.want); at += mib {
				n := min(mib, len(part.want)-at)
				if got := c.must("pread", fd, part.begin+at, n); got != string(part.want[at:at+n]) {
					t.Errorf("drop %t: wrong bytes at %d of %s", drop, at, part.path)
				}
			}
			c.must("close", fd)
		}
		got := cached(t, f, size)
		for range 100 {
			if !drop || got <= most {
				break
			}
			time.Sleep(10 * time.Millisecond) // the kernel has the last reply before it is dropped
			got = cached(t, f, size)
		}
		if drop && got > most || !drop && got < size {
			t.Errorf("drop %t: %d of %d bytes are cached", drop, got, size)
		}
	}
}

// A reply too short to be a part of the map is sent all the same: a block in which a tensor ends would
// stay for good.
func TestDropBehindShortReply(t *testing.T) {
	s := openShard(t, noise(2*dropBlock))
	f := file(format.Range(s, 0, s.Size()))
	h := &handle{tree: newTree(Options{DropBehind: true}), file: f, content: f, size: f.Size()}
	end := int64(dropBlock - 100)
	for _, part := range []span{{0, end}, {end, dropBlock}, {dropBlock, dropBlock + 100}} {
		res, errno := h.Read(context.Background(), make([]byte, part.end-part.begin), part.begin)
		if errno != 0 {
			t.Fatal(errno)
		}
		res.Done()
	}
	v, _ := h.tree.dropper.shards.Load(s)
	if got := v.(*spanSet).spans; !slices.Equal(got, []span{{dropBlock, dropBlock + 100}}) {
		t.Errorf("what was sent of no whole block: %v", got)
	}
}
