//go:build linux

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// A note is what a server tells its keeper.
type note struct {
	Ready  *readiness  `json:",omitempty"`
	Signal unix.Signal `json:",omitempty"`
	Done   bool        `json:",omitempty"` // the mount is gone
}

// A keeperEnd is a server's end of the socket.
type keeperEnd struct {
	notes   *json.Encoder
	hears   chan struct{} // closed when the keeper catches signals: one that came earlier has ended it
	gone    chan struct{} // closed when it has ended
	process *exec.Cmd     // nil where we are its child
}

// newKeeperEnd watches the socket: that it ends is how a server learns that its keeper has.
func newKeeperEnd(socket *os.File) *keeperEnd {
	k := &keeperEnd{notes: json.NewEncoder(socket), hears: make(chan struct{}), gone: make(chan struct{})}
	go func() {
		defer close(k.gone)
		b := make([]byte, 1)
		if n, _ := socket.Read(b); n == 0 {
			return
		}
		close(k.hears)
		socket.Read(b) // it writes no more
	}()
	return k
}

// asked tells of a keeper that is gone whether a signal asked it to end.
func (k *keeperEnd) asked() bool {
	if k.process == nil {
		return false
	}
	k.process.Process.Kill() // it may only have closed its end
	k.process.Wait()
	status := k.process.ProcessState.Sys().(syscall.WaitStatus)
	return status.Signaled() && slices.Contains(endSignals, os.Signal(status.Signal()))
}

func (k *keeperEnd) tell(n note) error { return k.notes.Encode(n) }

// lost is closed when the keeper has ended; of a server without one it never is.
func (k *keeperEnd) lost() <-chan struct{} {
	if k == nil {
		return nil
	}
	return k.gone
}

// hire starts the keeper of a server in the background.
func (s *server) hire(flags *pflag.FlagSet) {
	var process *exec.Cmd
	ours, theirs, err := socketPair()
	if err == nil {
		process, err = s.again(s.serverArgs(flags), serverVar, theirs, s.logFile, false)
		theirs.Close()
	}
	if err != nil {
		s.log.Warn("not confined", "err", fmt.Errorf("starting the keeper: %w", err))
		return
	}
	s.keeper = newKeeperEnd(ours)
	s.keeper.process = process
}

// socketPair is what a keeper and its server talk through: an end for each.
func socketPair() (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket"), nil
}
