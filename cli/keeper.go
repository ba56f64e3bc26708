//go:build linux

package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"weightfs/fs"
	"weightfs/metrics"
	"weightfs/sandbox"
)

// A process under Landlock cannot unmount, nor can those that it starts, not as root either. So a server
// that confines itself has a keeper, which stays outside: it mounts nothing and reads nothing, acts on
// signals, unmounts, and clears the mount away when the server is killed. In the foreground it is the
// process that the user started, and the server its child. In the background it is the server's child,
// started while that reads the checkpoint, so that nobody waits for it.
//
// They share a socket, through which the server says that it is ready, which signals it got, and that
// it ends, and the keeper that it catches signals. If either is killed, the other learns that from the socket's end.

const (
	// keeperVar names the descriptor of the socket to a keeper that started us, serverVar of that to a
	// server.
	keeperVar = "WEIGHTFS_KEEPER_FD"
	serverVar = "WEIGHTFS_SERVER_FD"
	// keeperName tells the keeper in the background from its server.
	keeperName = "weightfs-keeper"
)

// confined tells whether the server is to be confined, and so needs a keeper.
func (m *mounting) confined() bool { return !m.noSandbox && sandbox.Version() > 0 }

// A keeper is the keeping of one server.
type keeper struct {
	*service
	signal func(os.Signal) error // to the server
	ended  chan struct{}         // closed when the server is gone
	state  string                // how it ended, if that is known
	notes  chan note             // from it
	heard  chan struct{}         // closed when there are no more
	done   bool                  // it said that the mount is gone
	mount  *fs.Control
}

func (m *mounting) keeper() (*keeper, error) {
	service, err := m.service(nil)
	if err != nil {
		return nil, err
	}
	return &keeper{service: service, ended: make(chan struct{}), notes: make(chan note), heard: make(chan struct{})}, nil
}

// keepChild is the keeper in the foreground. A device that was passed to us is left to the server: as
// long as anybody else has it open, the mount of a dead server waits for answers.
func (m *mounting) keepChild(flags *pflag.FlagSet) error {
	k, err := m.keeper()
	if err != nil {
		return err
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	server, err := k.again(k.serverArgs(flags), keeperVar, theirs, os.Stderr, true)
	theirs.Close()
	if err != nil {
		return failf(exitTrouble, "starting the server: %w", err)
	}
	if device, n := k.inherited(); device != nil {
		device.Close()
		unix.Close(n)
	}
	k.signal = server.Process.Signal
	go func() {
		server.Wait()
		k.state = server.ProcessState.String()
		close(k.ended)
	}()
	if err = k.keep(ours); err == errEnded {
		return k.died(server.ProcessState)
	}
	return err
}

// keepParent is the keeper in the background. What it has to say is in the log.
func (m *mounting) keepParent(socket *os.File) error {
	called(keeperName)
	server, err := parentOf(socket)
	if err != nil {
		return nil // it has ended already
	}
	k, err := m.keeper()
	if err != nil {
		return err
	}
	k.signal = func(sig os.Signal) error { return unix.PidfdSendSignal(server, sig.(unix.Signal), nil, 0) }
	go func() {
		poll := []unix.PollFd{{Fd: int32(server), Events: unix.POLLIN}}
		for err := error(unix.EINTR); err == unix.EINTR; {
			_, err = unix.Poll(poll, -1)
		}
		close(k.ended)
	}()
	if err := k.keep(socket); err != nil {
		return reported{exitTrouble}
	}
	return nil
}

// parentOf is a handle of our parent, if that still is the process that made the socket.
func parentOf(socket *os.File) (pidfd int, err error) {
	conn, err := socket.SyscallConn()
	if err != nil {
		return -1, err
	}
	conn.Control(func(fd uintptr) {
		var peer *unix.Ucred
		if peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err != nil {
			return
		}
		pidfd, err = unix.PidfdOpen(int(peer.Pid), 0)
		if err == nil && os.Getppid() != int(peer.Pid) {
			err = unix.ESRCH
		}
	})
	return pidfd, err
}

// errEnded: the server ended before it was ready, and has said why.
var errEnded = errors.New("the server ended")

// keep keeps a server until its mount is gone.
func (k *keeper) keep(socket *os.File) error {
	defer k.finish(k.socketOfMetrics())
	socket.Write([]byte{0}) // we catch signals
	go k.listen(socket)
	r, err := k.await()
	if err != nil {
		return err
	}
	k.mount = fs.NewControl(r.Mount, k.ended, k.log)
	own := k.signals
	k.signals = make(chan os.Signal, 4)
	go k.hear(own)
	if k.foreground {
		k.ready(r)
	} else if err := os.Chdir("/"); err != nil {
		return err
	}
	rest()
	return k.until(k.mount, k.end)
}

// mostNotes bounds what a server can say in all, should somebody have taken it over: a line of ready that
// names thousands of warnings is a megabyte.
const mostNotes = 16 << 20

// listen reads what the server has to say, to its end.
func (k *keeper) listen(socket *os.File) {
	defer socket.Close()
	defer close(k.notes)
	for d := json.NewDecoder(io.LimitReader(socket, mostNotes)); ; {
		var n note
		if d.Decode(&n) != nil {
			return
		}
		k.notes <- n
	}
}

// await waits until the server is ready. A signal is the server's as long as it reads the source; if it
// cannot end, because a disk does not answer, it is left behind.
func (k *keeper) await() (*readiness, error) {
	const patience = endTime - time.Second
	var enough <-chan time.Time
	notes := k.notes
	for {
		select {
		case n, ok := <-notes:
			if n.Ready != nil {
				return n.Ready, nil
			}
			if !ok {
				notes = nil // it is about to end
			}
		case <-k.ended:
			for n := range k.notes { // it may have been ready, and unmounted at once
				if n.Ready != nil {
					return n.Ready, nil
				}
			}
			return nil, errEnded
		case sig := <-k.signals:
			k.signal(sig)
			enough = time.After(patience)
		case <-enough:
			return nil, failf(exitInterrupted, "%s: ended while %s was read", k.dir, k.source)
		}
	}
}

// hear passes on signals to who waits for them. A service manager sends them to keeper and server both,
// and the server its own to the keeper: what both got is one request.
func (k *keeper) hear(own <-chan os.Signal) {
	const us, server = 0, 1
	var got [2]int
	acted := 0
	notes := k.notes
	for {
		var from int
		var sig os.Signal
		select {
		case sig = <-own:
			from = us
		case n, ok := <-notes:
			if !ok {
				notes = nil
				close(k.heard)
				continue
			}
			if n.Done {
				k.done = true
				continue
			}
			from, sig = server, n.Signal
		}
		if got[from]++; got[from] > acted {
			acted = got[from]
			k.signals <- sig
		}
	}
}

// rest gives back all memory that waiting does not need.
func rest() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(10)
	debug.FreeOSMemory()
}

// end is the end of a server that was not told to: somebody unmounted, or it was killed. Then its mount
// must not stay, where every reader would get an error.
func (k *keeper) end() error {
	err := k.mount.Clear()
	if <-k.heard; k.done {
		return k.unmounted()
	}
	if err != nil {
		k.log.Warn("clearing the mount", "err", err)
	}
	state := cmp.Or(k.state, "killed, or a crash")
	k.log.Error("the server ended", "state", state, "dir", k.dir)
	k.notify(daemon.SdNotifyStopping)
	return failf(exitTrouble, "%s: the server ended: %s", k.dir, state)
}

// finish cuts off a server that has not ended, and takes away what that, confined, could not: its mount and
// the socket of its metrics.
func (k *keeper) finish(socket string) {
	select {
	case <-k.ended:
	default:
		k.signal(unix.SIGKILL)
		select {
		case <-k.ended:
		case <-time.After(time.Second): // it hangs in the kernel, and ends with that
		}
	}
	if k.mount != nil {
		k.mount.Clear()
	} else {
		k.clearDead()
	}
	if err := metrics.Clear(socket); err != nil {
		k.log.Warn("removing the socket of the metrics", "err", err)
	}
}

// socketOfMetrics is the address of the metrics, as it is from every directory.
func (k *keeper) socketOfMetrics() string {
	path, isUnix := strings.CutPrefix(k.metricsAddr.String(), "unix:")
	if abs, err := filepath.Abs(path); isUnix && err == nil {
		return abs
	}
	return k.metricsAddr.String()
}
