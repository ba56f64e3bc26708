//go:build linux

package faults

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weightfs/fs"
)

// many opens files of the mount, some of them several times.
func many(t *testing.T, s *server, want map[string][]byte, n int) (list []*reader) {
	t.Helper()
	paths := slices.Sorted(keys(want))
	for i := range n {
		path := paths[i%len(paths)]
		list = append(list, openReader(t, s.at(path), want[path]))
	}
	return list
}

// brokenOff are the errors of a mount whose server has gone away.
var brokenOff = []unix.Errno{unix.ENOTCONN, unix.ECONNABORTED, unix.EIO}

// The server is killed under load. No reader hangs, and the place can be used again at once, by the
// next mount or by the one after an unmount.
func TestKilled(t *testing.T) {
	c := newCheckpoint(t, t.TempDir())
	want := contents(t, c.dir, slices.Concat(views("a"), views("b"), spanning)...)
	s := newServer(t)
	for _, next := range []string{"mount", "umount", "mount"} {
		s.mount(c.dir)
		list := many(t, s, want, 40)
		crowd := keepReading(list)
		crowd.reading(t, 200)
		s.signal(unix.SIGKILL)
		if !s.exited(patience) {
			t.Fatal("the server lives")
		}
		if failed := crowd.end(t, brokenOff...); len(failed) == 0 {
			t.Error("no reader was told")
		}
		switch next {
		case "umount":
			if out, code := s.command("umount", s.dir); code != 0 && s.mounted() {
				t.Errorf("umount: exit code %d: %s", code, out)
			}
		case "mount":
			s.mount(c.dir)
			wholeFile(t, s.at("raw/b/m.big.raw"), want["raw/b/m.big.raw"])
		}
		for _, r := range list {
			r.close()
		}
		if next == "mount" {
			s.umount()
		}
		if s.mounted() {
			t.Fatal("a mount is left")
		}
	}
}

// A hundred readers are at it when the server is told to end: the mount is gone at once, they go on for
// the time of grace and then get an error.
func TestEndedWhileRead(t *testing.T) {
	c := newCheckpoint(t, t.TempDir())
	want := contents(t, c.dir, slices.Concat(views("a"), spanning)...)
	s := mount(t, c.dir, "--grace=1s")
	list := many(t, s, want, 100)
	crowd := keepReading(list)
	crowd.reading(t, 200)
	begin := time.Now()
	s.signal(unix.SIGTERM)
	if !eventually(func() bool { return !s.mounted() }) {
		t.Error("the mount is not detached")
	}
	if crowd.reading(t, 50); time.Since(begin) < time.Second && crowd.broken() > 0 {
		t.Error("within the time of grace readers got errors")
	}
	if !s.exited(patience) {
		t.Error("the server does not end")
	}
	if failed := crowd.end(t, brokenOff...); len(failed) == 0 {
		t.Error("no reader was told")
	}
	s.wantLog("ending", "signal=terminated")
	s.wantLog("in use and detached", "grace=1s")
	for _, r := range list {
		r.close()
	}
	s.gone(patience)
}

// A mount that is read stays, and its readers with it; who they are is said.
func TestBusy(t *testing.T) {
	c := newCheckpoint(t, t.TempDir())
	want := contents(t, c.dir, views("a")...)
	s := mount(t, c.dir)
	list := many(t, s, want, 10)
	crowd := keepReading(list)
	crowd.reading(t, 20)
	for range 3 {
		out, code := s.command("umount", s.dir)
		if code != 20 || !strings.Contains(out, fmt.Sprint(os.Getpid())) {
			t.Errorf("umount: exit code %d: %s", code, out)
		}
		crowd.reading(t, 20)
	}
	if users, err := fs.Busy(s.dir); err != nil || len(users) != 1 {
		t.Errorf("users: %v, %v", users, err)
	}
	if failed := crowd.end(t); len(failed) > 0 {
		t.Errorf("readers got %v", failed)
	}
	for _, r := range list {
		r.close()
	}
	s.umount()
}

// The mount is detached by hand while it is read: the readers go on, and with the last of them the
// server ends.
func TestDetachedByHand(t *testing.T) {
	c := newCheckpoint(t, t.TempDir())
	want := contents(t, c.dir, views("a")...)
	s := mount(t, c.dir)
	list := many(t, s, want, 10)
	crowd := keepReading(list)
	if out, code := s.command("umount", "--lazy", s.dir); code != 0 {
		t.Errorf("umount: exit code %d: %s", code, out)
	}
	crowd.reading(t, 100)
	if failed := crowd.end(t); len(failed) > 0 {
		t.Errorf("readers got %v", failed)
	}
	for _, r := range list {
		r.drop()
		r.whole()
		r.close()
	}
	s.gone(patience)
	s.wantLog("unmounted")
}
