//go:build linux

package cli

import (
	"encoding/json"
	"os"
	"os/exec"
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
// process that the user started; in the background a process of its own, between starter and server.
//
// They share a socket, through which the server says that it is ready and which signals it got. Who of
// the two is killed, the other learns from its end.

const (
	// keeperVar names the descriptor of the server's end of the socket.
	keeperVar = "WEIGHTFS_KEEPER_FD"
	// keeperName tells the keeper in the background from its server.
	keeperName = "weightfs-keeper"
	// keptEndTime is less than a starter's endTime, which is for keeper and server together.
	keptEndTime = endTime - 2*time.Second
)

// confined tells whether the server is to be confined, and so needs a keeper.
func (m *mounting) confined() bool { return !m.noSandbox && sandbox.Version() > 0 }

// A note is what a server tells its keeper.
type note struct {
	Ready  *readiness  `json:",omitempty"`
	Signal unix.Signal `json:",omitempty"`
}

// A keeperEnd is a server's end of the socket.
type keeperEnd struct {
	notes *json.Encoder
	gone  chan struct{} // closed when the keeper has ended
}

// theKeeper is the connection to the process that keeps this one, if one does.
func theKeeper() *keeperEnd {
	socket := adopt(keeperVar)
	if socket == nil {
		return nil
	}
	k := &keeperEnd{json.NewEncoder(socket), make(chan struct{})}
	go func() {
		socket.Read(make([]byte, 1)) // a keeper writes nothing
		close(k.gone)
	}()
	return k
}

func (k *keeperEnd) tell(n note) error { return k.notes.Encode(n) }

func (k *keeperEnd) lost() <-chan struct{} {
	if k == nil {
		return nil
	}
	return k.gone
}

// A keeper is the keeping of one server.
type keeper struct {
	*service
	server *exec.Cmd
	ended  chan struct{} // closed when the server is gone
	notes  chan note     // from it
	mount  *fs.Control
}

// keep starts a server and keeps it until its mount is gone.
func (m *mounting) keep(flags *pflag.FlagSet, starter *os.File) error {
	m.foreground = starter == nil
	service, err := m.service(starter)
	if err != nil {
		return err
	}
	if starter != nil {
		called(keeperName)
	}
	k := &keeper{service: service, ended: make(chan struct{}), notes: make(chan note)}
	if err := k.launch(flags); err != nil {
		return failf(exitTrouble, "starting the server: %w", err)
	}
	defer k.finish(k.socketOfMetrics())
	r, err := k.await()
	if err != nil {
		return err
	}
	k.mount = fs.NewControl(r.Mount, k.ended, k.log)
	own := k.signals
	k.signals = make(chan os.Signal, 4)
	go k.hear(own)
	if err := k.ready(r); err != nil {
		k.stop(k.mount)
		return err
	}
	rest()
	return k.until(k.mount, k.end)
}

// launch starts the server, and leaves to it a device that was passed to us: as long as anybody else has
// it open, the mount of a dead server waits for answers.
func (k *keeper) launch(flags *pflag.FlagSet) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "keeper")
	defer theirs.Close()
	unix.SetNonblock(pair[0], true)
	ours := os.NewFile(uintptr(pair[0]), "server")
	if k.server, err = k.again(k.serverArgs(flags), keeperVar, theirs, os.Stderr); err != nil {
		ours.Close()
		return err
	}
	if device, n := k.inherited(); device != nil {
		device.Close()
		unix.Close(n)
	}
	go func() {
		k.server.Wait()
		close(k.ended)
	}()
	go k.listen(ours)
	return nil
}

// listen reads what the server has to say, to its end.
func (k *keeper) listen(socket *os.File) {
	defer socket.Close()
	defer close(k.notes)
	for d := json.NewDecoder(socket); ; {
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
	var patience <-chan time.Time
	for {
		select {
		case n := <-k.notes:
			if n.Ready != nil {
				return n.Ready, nil
			}
		case <-k.ended:
			for n := range k.notes { // it may have been ready, and unmounted at once
				if n.Ready != nil {
					return n.Ready, nil
				}
			}
			return nil, k.died(k.server.ProcessState)
		case sig := <-k.signals:
			k.server.Process.Signal(sig)
			patience = time.After(keptEndTime)
		case <-patience:
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
	if k.server.ProcessState.Success() {
		return k.unmounted()
	}
	if err != nil {
		k.log.Warn("clearing the mount", "err", err)
	}
	k.log.Error("the server ended", "state", k.server.ProcessState.String(), "dir", k.dir)
	k.notify(daemon.SdNotifyStopping)
	return failf(exitTrouble, "%s: the server ended: %v", k.dir, k.server.ProcessState)
}

// finish cuts off a server that has not ended, and removes what it may not.
func (k *keeper) finish(socket string) {
	select {
	case <-k.ended:
	default:
		k.server.Process.Kill()
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
	path, isUnix := strings.CutPrefix(k.metricsAddr, "unix:")
	if abs, err := filepath.Abs(path); isUnix && err == nil {
		return abs
	}
	return k.metricsAddr
}
