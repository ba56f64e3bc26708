//go:build linux

package cli

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"weightfs/fs"
)

// In the background the server is this program started again, with a pipe through which it says that
// it is ready. The starter passes on its standard error until then: its one line of failure, or the
// runtime's last words. It is not the starter's own, because a server that hangs on a dead disk cannot
// be killed, and would keep whoever reads the starter's output waiting.

const (
	// readyVar names the descriptor of the pipe to the server.
	readyVar = "WEIGHTFS_READY_FD"
	// readyWord comes before what the starter prints.
	readyWord = "ready\n"
	// endTime is how long a server that was told to end may take before it is killed.
	endTime = 5 * time.Second
)

// adopt takes over a descriptor that again gave us, if it did.
func adopt(variable string) *os.File {
	fd, err := strconv.Atoi(os.Getenv(variable))
	if err != nil || fd < 3 {
		return nil
	}
	unix.CloseOnExec(fd) // or fusermount3 would hold it
	os.Unsetenv(variable)
	called(os.Args[0])
	unix.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), variable)
}

// called is the name in ps(1) and top(1) of a process that was started as /proc/self/exe.
func called(name string) { os.WriteFile("/proc/self/comm", []byte(filepath.Base(name)), 0) }

// start runs the server in the background and waits until it is ready or has failed.
func (m *mounting) start(flags *pflag.FlagSet) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, endSignals...)
	defer signal.Stop(signals)
	server, err := m.spawn(m.serverArgs(flags))
	if err != nil {
		return failf(exitTrouble, "starting the server: %w", err)
	}
	var timeout <-chan time.Time
	if m.wait > 0 {
		timeout = time.After(m.wait)
	}
	select {
	case text := <-server.answer:
		server.passOn()
		if line, ok := strings.CutPrefix(text, readyWord); ok {
			io.WriteString(m.out, line) // the mount is there, whoever may read this
			return nil
		}
		server.Wait()
		return m.died(server.ProcessState)
	case <-timeout:
		m.end(server)
		return failf(exitNotReady, "%s: %s could not be read within %s (--wait)", m.dir, m.source, m.wait)
	case sig := <-signals:
		m.end(server)
		return failf(exitInterrupted, "%s: %s before the tree could be read", m.dir, sig)
	}
}

// serverArgs spells everything out, so that ps(1) and `weightfs status` find which server has which
// mount.
func (m *mounting) serverArgs(flags *pflag.FlagSet) []string {
	args := []string{"weightfs", "mount"}
	if m.json {
		args = append(args, "--json")
	}
	if m.quiet {
		args = append(args, "--quiet")
	}
	flags.Visit(func(f *pflag.Flag) {
		if !slices.Contains(notOptions, f.Name) {
			args = append(args, spelled(f)...)
		}
	})
	return append(args, "--", m.source, m.dir)
}

// A child is the server as its starter sees it.
type child struct {
	*exec.Cmd
	answer <-chan string // what it wrote to the pipe, when it has closed that
	stderr <-chan string
	err    io.Writer
}

// passOn prints the child's standard error, which it has closed or is about to.
func (c *child) passOn() {
	select {
	case text := <-c.stderr:
		io.WriteString(c.err, text)
	case <-time.After(endTime):
	}
}

// readAll reads a pipe to its end.
func readAll(r *os.File) <-chan string {
	all := make(chan string, 1)
	go func() {
		defer r.Close()
		b, _ := io.ReadAll(r)
		all <- string(b)
	}()
	return all
}

// spawn starts the server with pipes to it.
func (m *mounting) spawn(args []string) (*child, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	errR, errW, err := os.Pipe()
	if err != nil {
		r.Close()
		return nil, err
	}
	defer errW.Close()
	cmd, err := m.again(args, readyVar, w, errW, true)
	if err != nil {
		r.Close()
		errR.Close()
		return nil, err
	}
	return &child{cmd, readAll(r), readAll(errR), m.err}, nil
}

// again starts this program once more, in a session of its own, with a file whose descriptor a variable
// tells, and the device of the mount to come if that is its.
func (m *mounting) again(args []string, variable string, f, stderr *os.File, serves bool) (*exec.Cmd, error) {
	cmd := exec.Command("/proc/self/exe", args[1:]...)
	cmd.Args = args
	if stderr != nil {
		cmd.Stderr = stderr
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if device, n := m.inherited(); serves && device != nil {
		defer device.Close()
		cmd.ExtraFiles = make([]*os.File, n-2)
		cmd.ExtraFiles[n-3] = device
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	cmd.Env = append(os.Environ(), variable+"="+strconv.Itoa(len(cmd.ExtraFiles)+2))
	closeOthers()
	return cmd, cmd.Start()
}

// inherited is the device of a mount that was made for us, which the server needs under its number.
func (m *mounting) inherited() (*os.File, int) {
	n, err := strconv.Atoi(filepath.Base(m.dir))
	if !m.passedDevice() || err != nil || n < 3 {
		return nil, 0
	}
	fd, err := unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, 0
	}
	return os.NewFile(uintptr(fd), m.dir), n
}

// closeOthers keeps from the server what the starter was given unasked: a lock, or the pipe of a build
// that waits for its end.
func closeOthers() {
	const first = 3
	if unix.CloseRange(first, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	fds, _ := os.ReadDir("/proc/self/fd") // before Linux 5.11
	for _, e := range fds {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
}

// endSignals ask to end.
var endSignals = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP}

// died takes over the exit code of a server that was never ready. It has printed the reason, unless a
// signal ended it: also one that asks to end, before it could hear it, or its keeper could.
func (m *mounting) died(state *os.ProcessState) error {
	m.clearDead() // confined, it could not unmount
	switch code := state.ExitCode(); {
	case code == exitInterrupted && !m.foreground:
		return failf(exitInterrupted, "%s: the server or its keeper was ended before it was ready", m.dir)
	case code > 0:
		return reported{code}
	}
	if status := state.Sys().(syscall.WaitStatus); status.Signaled() && slices.Contains(endSignals, os.Signal(status.Signal())) {
		return failf(exitInterrupted, "%s: %s before the tree could be read", m.dir, status.Signal())
	}
	return failf(exitTrouble, "%s: the server ended before it was ready: %v", m.dir, state)
}

// end tells the server to end, and leaves neither it nor its mount behind.
func (m *mounting) end(server *child) {
	server.Process.Signal(unix.SIGTERM)
	ended := make(chan struct{})
	go func() {
		server.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(endTime):
		server.Process.Kill()
		select {
		case <-ended:
		case <-time.After(time.Second): // it hangs in the kernel, and ends with that
		}
	}
	m.clearDead()
}

// clearDead takes away the mount of a server that was killed.
func (m *mounting) clearDead() {
	if stale, err := fs.Stale(m.dir); err == nil && stale {
		fs.Clear(m.dir)
	}
}
