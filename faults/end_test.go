//go:build linux

package faults

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weightfs/fs"
	"weightfs/sandbox"
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

// The keeper is ended while the mount is made, before it knows of that. Confined, the server cannot take the
// mount away: whoever started it does, and says why there is none.
func TestKeeperEndedAtStart(t *testing.T) {
	if sandbox.Version() == 0 {
		t.Skip("a server that is not confined needs no keeper")
	}
	c := newCheckpoint(t, t.TempDir())
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			s := newServer(t)
			ended := 0
			for range 15 {
				var out bytes.Buffer
				starter := exec.Command(program, "mount", "--log-file="+s.log, c.dir, s.dir)
				starter.Env = append(os.Environ(), s.env...)
				starter.Stderr = &out
				must(t, starter.Start())
				done := make(chan struct{})
				go func() { starter.Wait(); close(done) }()
				keeper := grandchild(starter.Process.Pid, done)
				if keeper != 0 && unix.Kill(keeper, sig) == nil {
					ended++
				}
				quickly(t, "mount", func() { <-done })
				code := starter.ProcessState.ExitCode()
				switch {
				case code == 0 && (keeper == 0 || sig == unix.SIGKILL): // it was ready before
					s.command("umount", s.dir)
				case code == 0:
					alive := func() bool { _, err := os.ReadFile(s.at("README.txt")); return err == nil }
					if !eventually(func() bool { return !s.mounted() || alive() }) {
						t.Fatal("a dead mount is left")
					}
					s.command("umount", s.dir) // what was ended was not yet the keeper
				case s.mounted():
					t.Fatalf("exit code %d, and a mount is left: %s", code, &out)
				case code != 2 && code != 21, !strings.Contains(out.String(), s.dir), !strings.Contains(out.String(), "before it was ready"):
					t.Errorf("exit code %d: %s", code, &out)
				}
			}
			if ended == 0 {
				t.Skip("no keeper was seen in time")
			}
		})
	}
}

// grandchild waits for the first process that a child of pid starts.
func grandchild(pid int, done <-chan struct{}) int {
	for {
		for _, child := range children(pid) {
			for _, grandchild := range children(child) {
				return grandchild
			}
		}
		select {
		case <-done:
			return 0
		default:
		}
	}
}

func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(b)) {
			child, _ := strconv.Atoi(word)
			pids = append(pids, child)
		}
	}
	return pids
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
