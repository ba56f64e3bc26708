//go:build linux

package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a process can do in a box is tried in another process, which is this test once more.

const (
	roleVar = "WEIGHTFS_TEST_ROLE"
	dirVar  = "WEIGHTFS_TEST_DIR"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVar) != "confined" {
		os.Exit(m.Run())
	}
	if err := confined(os.Getenv(dirVar)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// A deed is something to try, with the errno that it must end in.
type deed struct {
	name string
	want unix.Errno
	do   func() error
}

func opens(path string) func() error {
	return func() error {
		f, err := os.Open(path)
		if err == nil {
			err = f.Close()
		}
		return err
	}
}

// deeds are tried in a directory with a (readable) and its file and its links, w (writable), x (neither).
func deeds(dir string) []deed {
	in := func(path string) string { return filepath.Join(dir, path) }
	return []deed{
		{"reads a file", 0, opens(in("a/file"))},
		{"lists a directory", 0, func() error { _, err := os.ReadDir(in("a")); return err }},
		{"reads a single file", 0, opens(in("single"))},
		{"reads through a link that was there", 0, opens(in("target"))},
		{"does not read beside it", unix.EACCES, opens(in("x/file"))},
		{"does not read /etc/passwd", unix.EACCES, opens("/etc/passwd")},
		{"nor by a link that is new", unix.EACCES, func() error {
			os.Symlink("/etc/passwd", in("w/link")) // may be denied itself
			return opens(in("a/escape"))()
		}},
		{"does not list /", unix.EACCES, func() error { _, err := os.ReadDir("/"); return err }},
		{"does not write what it reads", unix.EACCES, func() error { return os.WriteFile(in("a/file"), nil, 0o600) }},
		{"does not make a file there", unix.EACCES, func() error { return os.WriteFile(in("a/new"), nil, 0o600) }},
		{"does not remove one there", unix.EACCES, func() error { return os.Remove(in("a/file")) }},
		{"writes, renames, removes in its own", 0, func() error {
			f, err := os.CreateTemp(in("w"), "")
			if err != nil {
				return err
			}
			f.WriteString("text")
			if err := errors.Join(f.Close(), os.Rename(f.Name(), in("w/kept")), opens(in("w/kept"))()); err != nil {
				return err
			}
			return os.Remove(in("w/kept"))
		}},
		{"makes a file without a name", 0, func() error {
			fd, err := unix.Open(in("w"), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
			if err == nil {
				err = unix.Close(fd)
			}
			return err
		}},
		{"makes no link", unix.EACCES, func() error { return os.Symlink("/etc", in("w/etc")) }},
		{"looks at what it may not open", 0, func() error { _, err := os.Stat(in("x/file")); return err }},
		{"runs no program", unix.EACCES, func() error { return exec.Command("/bin/true").Run() }},
		{"opens no device", unix.EACCES, opens("/dev/zero")},
		{"looks at itself", 0, func() error { _, err := os.ReadFile("/proc/self/status"); return err }},
		{"not at others", unix.EACCES, opens(fmt.Sprintf("/proc/%d/environ", os.Getppid()))},
		{"mounts nothing", unix.EPERM, func() error { return unix.Mount("none", in("w"), "tmpfs", 0, "") }},
	}
}

// network is tried without package net, which listens with MPTCP; Landlock knows TCP alone.
func network() []deed {
	tcp := func(do func(fd int, sa unix.Sockaddr) error) func() error {
		return func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return do(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: 9})
		}
	}
	return []deed{{"connects nowhere", unix.EACCES, tcp(unix.Connect)}, {"binds no port", unix.EACCES, tcp(unix.Bind)}}
}

func confined(dir string) error {
	kept, err := os.OpenFile(filepath.Join(dir, "x/kept"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	busy := make(chan bool)
	for range 8 { // threads that were there before
		go func() { unix.Nanosleep(&unix.Timespec{Nsec: 100e6}, nil); busy <- true }()
	}
	time.Sleep(10 * time.Millisecond)
	box, err := New(Policy{
		Read:  []string{filepath.Join(dir, "a"), filepath.Join(dir, "single"), filepath.Join(dir, "link"), filepath.Join(dir, "missing")},
		Write: []string{filepath.Join(dir, "w"), filepath.Join(dir, "missing")},
	})
	if err != nil {
		return err
	}
	if err := box.Enter(); err != nil {
		return err
	}
	var group sync.WaitGroup
	errs := make([]error, 16)
	list := deeds(dir)
	if Version() >= 4 {
		list = append(list, network()...)
	}
	for i := range errs {
		group.Go(func() { errs[i] = errors.Join(each(list)...) })
		<-time.After(time.Millisecond)
	}
	group.Wait()
	for range 8 {
		<-busy
	}
	if _, err := kept.WriteString("what is open can be used"); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(threads()); err != nil {
		return err
	}
	return errors.Join(errs...)
}

func each(list []deed) (faults []error) {
	for _, d := range list {
		err := d.do()
		errno, _ := errors.AsType[unix.Errno](err)
		if errno != d.want || err != nil && errno == 0 {
			faults = append(faults, fmt.Errorf("%s: got %w, want %v", d.name, err, d.want))
		}
	}
	return faults
}

// threads are the lines of interest in the state of every thread.
func threads() []string {
	var all []string
	tasks, _ := filepath.Glob("/proc/self/task/*/status")
	for _, task := range tasks {
		b, _ := os.ReadFile(task)
		var lines []string
		for line := range strings.Lines(string(b)) {
			for _, name := range []string{"NoNewPrivs", "CapInh", "CapPrm", "CapEff", "CapAmb"} {
				if rest, ok := strings.CutPrefix(line, name+":"); ok {
					lines = append(lines, name+" "+strings.TrimSpace(rest))
				}
			}
		}
		all = append(all, strings.Join(lines, ", "))
	}
	return all
}

func TestConfined(t *testing.T) {
	if Version() == 0 {
		t.Skip(ErrUnsupported)
	}
	dir := t.TempDir()
	for _, d := range []string{"a", "w", "x"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"a/file", "x/file", "x/kept", "single", "target"} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "target", "a/escape": "/etc/passwd"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"=confined", dirVar+"="+dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var states []string
	if err := json.Unmarshal(out, &states); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	capabilities := "0000000000000000"
	if os.Geteuid() == 0 {
		capabilities = fmt.Sprintf("%016x", 1<<unix.CAP_DAC_READ_SEARCH)
	}
	none := "0000000000000000"
	want := fmt.Sprintf("CapInh %s, CapPrm %s, CapEff %s, CapAmb %s, NoNewPrivs 1", none, capabilities, capabilities, none)
	if len(states) < 8 || slices.ContainsFunc(states, func(s string) bool { return s != want }) {
		t.Errorf("%d threads, want all to be %s: %q", len(states), want, states)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "x/kept")); err != nil || !bytes.Contains(b, []byte("what is open")) {
		t.Errorf("%q, %v", b, err)
	}
}
