//go:build linux

package faults

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A clock that was set back makes files of the future, and changes that seem older than what they
// changed. Here the files' times are set.

// setTime sets when a file was changed, to the nanosecond.
func setTime(t *testing.T, path string, to time.Time) {
	t.Helper()
	at := unix.Timespec{Sec: to.Unix(), Nsec: int64(to.Nanosecond())} // os.Chtimes ends in 2262
	must(t, unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{at, at}, 0))
}

var oddTimes = []time.Time{
	time.Unix(0, 0),
	time.Unix(-1, 999_999_999),
	time.Date(1903, 1, 1, 0, 0, 0, 1, time.UTC),
	time.Date(2100, 2, 28, 23, 59, 59, 0, time.UTC),
	time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC), // its nanoseconds overflow
	time.Now().Add(time.Hour),
}

// A file of any time is served, shows that time, and is missed when it changes to an earlier one.
func TestOddTimes(t *testing.T) {
	for _, when := range oddTimes {
		t.Run(when.UTC().Format(time.DateOnly), func(t *testing.T) {
			c := newCheckpoint(t, t.TempDir())
			setTime(t, c.a, when)
			st, err := os.Stat(c.a)
			must(t, err)
			if !st.ModTime().Equal(when) {
				t.Skip("this file system has no such time")
			}
			want := contents(t, c.dir, append(views("a"), spanning...)...)
			s := mount(t, c.dir)
			for path, b := range want {
				wholeFile(t, s.at(path), b)
			}
			if st, err := os.Stat(s.at("raw/a/m.big.raw")); err != nil || !st.ModTime().Equal(when) {
				t.Errorf("the mount shows %v, %v", st.ModTime(), err)
			}
			r := openReader(t, s.at("raw/a/m.big.raw"), want["raw/a/m.big.raw"])
			must(t, rewrite(c.a, shard("a", 1), padAt))
			setTime(t, c.a, when.Add(-time.Nanosecond))
			wantOpen(t, s.at("raw/a/m.big.raw"), unix.ESTALE)
			r.drop()
			if err := r.read(0, 1<<20); err != unix.EIO {
				t.Errorf("after a change to an earlier time: %v", err)
			}
			r.close()
			s.umount()
		})
	}
}

// manyTensors is a file of so many tensors that what was found in it is kept for the next time.
func manyTensors(last string) []byte {
	const n = 150_000
	var b strings.Builder
	b.WriteString("{")
	for i := range n - 1 {
		fmt.Fprintf(&b, `"model.layers.%d.experts.%d.w": {"dtype": "U8", "shape": [1], "data_offsets": [%d, %d]},`, i/1000, i%1000, i, i+1)
	}
	fmt.Fprintf(&b, `"%s": {"dtype": "U8", "shape": [1], "data_offsets": [%d, %d]}}`, last, n-1, n)
	out := binary.LittleEndian.AppendUint64(nil, uint64(b.Len()))
	return append(append(out, b.String()...), slices.Repeat([]byte(last[:1]), n)...)
}

// What is kept of a file is used for that very state of it: not for one that has the same size and was
// given the same time, and not when the clock has gone back since.
func TestKeptAndChanged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.safetensors")
	must(t, os.WriteFile(path, manyTensors("xx.first"), 0o644))
	when := time.Now().Add(-time.Minute)
	setTime(t, path, when)
	time.Sleep(100 * time.Millisecond) // what was changed this moment is not kept
	s := newServer(t)
	cache := strings.TrimPrefix(s.env[0], "XDG_CACHE_HOME=") + "/weightfs"
	kept := func() (names []string) { names, _ = filepath.Glob(cache + "/*.index"); return names }
	s.mount(path)
	wholeFile(t, s.at("raw/xx.first.raw"), []byte("x"))
	eventually(func() bool { return len(kept()) > 0 })
	s.umount()
	if len(kept()) == 0 {
		t.Skip("this machine is so fast that nothing is kept")
	}

	for _, age := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		setTime(t, kept()[0], time.Now().Add(age))
		s.mount(path)
		wholeFile(t, s.at("raw/xx.first.raw"), []byte("x"))
		s.umount()
	}

	must(t, os.WriteFile(path, manyTensors("yy.other"), 0o644))
	setTime(t, path, when)
	s.mount(path)
	wholeFile(t, s.at("raw/yy.other.raw"), []byte("y"))
	if _, err := os.Stat(s.at("raw/xx.first.raw")); !os.IsNotExist(err) {
		t.Errorf("what was there before: %v", err)
	}
	s.umount()

	for _, name := range kept() {
		must(t, os.Remove(name))
	}
	setTime(t, path, time.Now().Add(time.Hour))
	s.mount(path)
	wholeFile(t, s.at("raw/yy.other.raw"), []byte("y"))
	s.umount()
	if len(kept()) > 0 {
		t.Error("something is kept of a file that is of the future, and may change without looking changed")
	}
}
