//go:build linux

package faults

import (
	"fmt"
	"os"
	"path/filepath"
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

// The server is killed under load, or who keeps it, or both. No reader hangs, nothing is left, and the
// place can be used again at once.
func TestKilled(t *testing.T) {
	c := newCheckpoint(t, t.TempDir())
	want := contents(t, c.dir, slices.Concat(views("a"), views("b"), spanning)...)
	for name, victims := range map[string]func(s *server) []int{
		"server": func(s *server) []int { return []int{s.pid} },
		"keeper": func(s *server) []int {
			return slices.DeleteFunc(s.processes(), func(pid int) bool { return pid == s.pid })
		},
		"both": (*server).processes,
	} {
		t.Run(name, func(t *testing.T) {
			s := mount(t, c.dir)
			kept := len(s.processes()) > 1 // a server that is not confined needs no keeper
			if !kept && name == "keeper" {
				t.Skip("there is none")
			}
			list := many(t, s, want, 40)
			crowd := keepReading(list)
			crowd.reading(t, 200)
			for _, pid := range victims(s) {
				must(t, unix.Kill(pid, unix.SIGKILL))
			}
			if !s.exited(patience) {
				t.Fatal("the server lives")
			}
			if failed := crowd.end(t, brokenOff...); len(failed) == 0 {
				t.Error("no reader was told")
			}
			if kept && name == "server" {
				s.gone(patience)
				s.wantLog("the server ended", "killed", s.dir)
			}
			if name == "keeper" {
				s.wantLog("the keeper of the mount is gone", s.dir)
			}
			s.mount(c.dir)
			wholeFile(t, s.at("raw/b/m.big.raw"), want["raw/b/m.big.raw"])
			for _, r := range list {
				r.close()
			}
			s.umount()
		})
	}
}

// What is left when all processes of a mount were killed is cleared away by umount as well.
func TestKilledAndUnmounted(t *testing.T) {
	c := newCheckpoint(t, t.TempDir())
	s := mount(t, c.dir)
	for _, pid := range s.processes() {
		must(t, unix.Kill(pid, unix.SIGKILL))
	}
	s.exited(patience)
	if out, code := s.command("umount", s.dir); code != 0 && s.mounted() { // the keeper may have been faster
		t.Errorf("umount: exit code %d: %s", code, out)
	}
	s.gone(patience)
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

// A directory above the mount point is renamed while it is read. Nobody notices, and the mount can be
// ended however it is: asked to, unmounted where it is now, or killed.
func TestRenamedAbove(t *testing.T) {
	c := newCheckpoint(t, t.TempDir())
	want := contents(t, c.dir, views("a")...)
	for name, end := range map[string]func(s *server){
		"SIGTERM": func(s *server) { s.signal(unix.SIGTERM); s.gone(patience) },
		"umount":  (*server).umount,
		"SIGKILL": func(s *server) { s.signal(unix.SIGKILL); s.gone(patience) },
	} {
		t.Run(name, func(t *testing.T) {
			was := filepath.Join(t.TempDir(), "was")
			must(t, os.Mkdir(was, 0o755))
			s := newServer(t)
			mnt := s.dir
			s.dir = filepath.Join(was, "mnt")
			must(t, os.Mkdir(s.dir, 0o755))
			s.mount(c.dir)
			if name == "SIGKILL" && len(s.processes()) == 1 {
				t.Skip("nobody is there to clear it away")
			}
			list := many(t, s, want, 10)
			crowd := keepReading(list)
			crowd.reading(t, 20)
			must(t, os.Rename(was, was+".new"))
			pids := s.processes()
			s.dir = filepath.Join(was+".new", "mnt")
			wholeFile(t, s.at(views("a")[0]), want[views("a")[0]])
			crowd.reading(t, 20)
			if failed := crowd.end(t); len(failed) > 0 {
				t.Errorf("readers got %v", failed)
			}
			for _, r := range list {
				r.close()
			}
			end(s)
			if !eventually(func() bool { return !slices.ContainsFunc(pids, func(pid int) bool { return unix.Kill(pid, 0) == nil }) }) {
				t.Errorf("of the processes %v some are left", pids)
			}
			s.dir = mnt
		})
	}
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
