//go:build linux

package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weightfs/fs"
)

// patience is for what takes moments on an idle machine. It is waited for in ticks: on one that has no
// time for these tests they come late, and a server that is slow for that does not look like one that hangs.
const (
	patience = 30 * time.Second
	tick     = 5 * time.Millisecond
)

// A server is a mount of its own with the process that serves it.
type server struct {
	t    testing.TB
	dir  string
	log  string
	env  []string // beside the test's own
	run  []string // what runs the program, such as a shell that sets a limit
	pid  int
	proc int // pidfd
}

func needFUSE(t testing.TB) {
	t.Helper()
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no FUSE here: ", err)
	}
	f.Close()
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// newServer makes the place of a mount.
func newServer(t testing.TB) *server {
	t.Helper()
	needFUSE(t)
	dir := t.TempDir()
	s := &server{t: t, dir: filepath.Join(dir, "mnt"), log: filepath.Join(dir, "log"), env: []string{"XDG_CACHE_HOME=" + dir, "GORACE=atexit_sleep_ms=0"}}
	must(t, os.Mkdir(s.dir, 0o755))
	t.Cleanup(s.end)
	return s
}

func mount(t testing.TB, source string, args ...string) *server {
	t.Helper()
	s := newServer(t)
	s.mount(source, args...)
	return s
}

// mount starts the server; the mount can be read then.
func (s *server) mount(source string, args ...string) {
	s.t.Helper()
	args = append([]string{"mount", "--json", "--log-file=" + s.log}, args...)
	out, code := s.command(append(args, source, s.dir)...)
	var ready struct{ PID int }
	if code != 0 || json.Unmarshal([]byte(out[strings.IndexByte(out, '{')+1-1:]), &ready) != nil {
		s.t.Fatalf("mount: exit code %d: %s", code, out)
	}
	s.pid = ready.PID
	proc, err := unix.PidfdOpen(s.pid, 0)
	must(s.t, err)
	s.proc = proc
	s.t.Cleanup(func() { unix.Close(proc) })
}

// command runs the program.
func (s *server) command(args ...string) (out string, code int) {
	s.t.Helper()
	line := slices.Concat(s.run, []string{program}, args)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), s.env...)
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	quickly(s.t, strings.Join(args, " "), func() {
		if err := cmd.Run(); err != nil {
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok {
				b.WriteString(err.Error())
			}
			code = -1
			if ok {
				code = exit.ExitCode()
			}
		}
	})
	return b.String(), code
}

// quickly fails the test when something hangs.
func quickly(t testing.TB, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	for range 2 * patience / tick {
		select {
		case <-done:
			return
		case <-time.After(tick):
		}
	}
	t.Fatalf("%s hangs\n%s", what, waits())
}

// waits tells what the threads of all servers of ours wait for in the kernel.
func waits() string {
	var b strings.Builder
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		args, _ := os.ReadFile(line)
		if !bytes.Contains(args, []byte("weightfs")) {
			continue
		}
		stacks := map[string]int{} // only root sees them
		tasks, _ := filepath.Glob(filepath.Dir(line) + "/task/*/stack")
		for _, task := range tasks {
			stack, _ := os.ReadFile(task)
			stacks[string(stack)]++
		}
		fmt.Fprintf(&b, "%s: %s\n", filepath.Dir(line), bytes.ReplaceAll(args, []byte{0}, []byte{' '}))
		for stack, n := range stacks {
			fmt.Fprintf(&b, "%d threads:\n%s", n, stack)
		}
	}
	return b.String()
}

// signal reaches this server and no other process.
func (s *server) signal(sig unix.Signal) {
	s.t.Helper()
	must(s.t, unix.PidfdSendSignal(s.proc, sig, nil, 0))
}

// exited waits for the end of the process.
func (s *server) exited(within time.Duration) bool {
	return eventuallyWithin(within, func() bool {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(s.proc), Events: unix.POLLIN}}, 0)
		return n == 1
	})
}

func (s *server) mounted() bool {
	_, there, err := fs.Find(s.dir)
	return err == nil && there
}

// umount ends the mount as a user does, and looks whether anything is left.
func (s *server) umount() {
	s.t.Helper()
	if out, code := s.command("umount", s.dir); code != 0 {
		s.t.Errorf("umount: exit code %d: %s", code, out)
	}
	s.gone(patience)
}

// gone: neither mount nor process is left within a time.
func (s *server) gone(within time.Duration) {
	s.t.Helper()
	if !s.exited(within) {
		s.t.Errorf("the server runs on after %v\n%s", within, waits())
	}
	if !eventually(func() bool { return !s.mounted() }) {
		s.t.Error("the mount is still there")
	}
	if !eventually(func() bool { return len(s.processes()) == 0 }) {
		s.t.Errorf("processes are left: %v", s.processes())
	}
}

// processes are those of the mount: the server, and who keeps it.
func (s *server) processes() (pids []int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		b, _ := os.ReadFile(line) // empty of one that has ended
		if args := strings.Split(string(b), "\x00"); slices.Contains(args, s.dir) {
			var pid int
			fmt.Sscanf(line, "/proc/%d", &pid)
			pids = append(pids, pid)
		}
	}
	return pids
}

// end clears away what a failed test has left.
func (s *server) end() {
	if s.mounted() || !eventually(func() bool { return len(s.processes()) == 0 }) {
		unix.Unmount(s.dir, unix.MNT_DETACH)
		s.t.Errorf("a mount or processes %v are left", s.processes())
		for _, pid := range s.processes() {
			unix.Kill(pid, unix.SIGKILL)
		}
	}
	if bad := regexp.MustCompile(`internal error|DATA RACE|panic:.*`).FindString(s.logged()); bad != "" {
		s.t.Errorf("%s in the log:\n%s", bad, s.logged())
	}
}

func (s *server) logged() string {
	b, _ := os.ReadFile(s.log)
	return string(b)
}

// wantLog: a line that says what happened.
func (s *server) wantLog(words ...string) {
	s.t.Helper()
	has := func() bool {
		for line := range strings.Lines(s.logged()) {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
				return true
			}
		}
		return false
	}
	if !eventually(has) {
		s.t.Errorf("no line of the log has %q:\n%s", words, s.logged())
	}
}

// wantFault: a line tells of a read that failed, with the shard, the tensor and a place within that.
func (s *server) wantFault(shard, tensor, reason string) {
	s.t.Helper()
	begin, end := place(tensor)
	line := regexp.MustCompile("level=ERROR .*" + regexp.QuoteMeta(shard) + `: offset (\d+): .*` + regexp.QuoteMeta(reason) + ".* tensor=" + regexp.QuoteMeta(tensor) + "\n")
	if !eventually(func() bool {
		for _, found := range line.FindAllStringSubmatch(s.logged(), -1) {
			if off, err := strconv.Atoi(found[1]); err == nil && off >= begin && off < end {
				return true
			}
		}
		return false
	}) {
		s.t.Errorf("no line of the log has %s, %s from %d to %d, and %q:\n%s", shard, tensor, begin, end, reason, s.logged())
	}
}

// at is the place of a file of the tree.
func (s *server) at(path string) string { return filepath.Join(s.dir, path) }

// count reads a number of the server's /proc/PID/status.
func (s *server) status(field string) (n int) {
	s.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	must(s.t, err)
	_, rest, _ := strings.Cut(string(b), "\n"+field+":")
	fmt.Sscan(rest, &n)
	return n
}

func (s *server) descriptors() int {
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.pid))
	return len(fds)
}

func eventually(ok func() bool) bool { return eventuallyWithin(patience, ok) }

func eventuallyWithin(within time.Duration, ok func() bool) bool {
	for range within / tick {
		if ok() {
			return true
		}
		time.Sleep(tick)
	}
	return ok()
}
