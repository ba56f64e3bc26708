//go:build linux

package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"weightfs/fs"
)

// A service is a process that lives as long as a mount: the server or, where that is confined, its
// keeper.
type service struct {
	*mounting
	starter *os.File // who waits for us; nil in the foreground
	log     *slog.Logger
	logFile *os.File
	signals chan os.Signal
}

func (m *mounting) service(starter *os.File) (*service, error) {
	log, file, err := m.logger()
	if err != nil {
		return nil, err
	}
	m.fs.Logger = log
	s := &service{mounting: m, starter: starter, log: log, logFile: file, signals: make(chan os.Signal, 4)}
	s.catch()
	return s, nil
}

// catch wants the signals that end a server. A SIGHUP that nohup(1) turned off stays off. A reader of
// the log that has gone away ends nothing.
func (s *service) catch() {
	signal.Ignore(unix.SIGPIPE)
	signal.Notify(s.signals, unix.SIGINT, unix.SIGTERM)
	if !signal.Ignored(unix.SIGHUP) {
		signal.Notify(s.signals, unix.SIGHUP)
	}
}

// A readiness is what is said of a mount that can be read.
type readiness struct {
	Line   string // for who started it
	Status string // for the service manager
	Mount  fs.ID
}

// ready says that the tree can be read. If nobody is there any more who waited for that, nobody wants
// the mount.
func (s *service) ready(r *readiness) error {
	if s.starter == nil {
		if s.json {
			io.WriteString(s.out, r.Line)
		}
		s.notify(daemon.SdNotifyReady + "\nSTATUS=" + r.Status)
		return nil
	}
	if err := s.detach(); err != nil {
		return err
	}
	if _, err := io.WriteString(s.starter, readyWord+r.Line); err != nil {
		return fmt.Errorf("nobody waits for the mount: %w", err)
	}
	return s.starter.Close()
}

// notify tells the service manager, if this process is a service and not a service's child.
func (s *service) notify(state string) {
	if !s.foreground {
		return
	}
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.log.Warn("telling the service manager", "err", err)
	}
}

// detach leaves the starter's directory and terminal. The log file becomes standard error, for the
// runtime's last words; without one /dev/null does, which standard output is.
func (s *service) detach() error {
	if err := os.Chdir("/"); err != nil {
		return err
	}
	to := s.logFile
	if to == nil {
		to = os.Stdout
	}
	return os.NewSyscallError("dup3", unix.Dup3(int(to.Fd()), 2, 0))
}

// until waits until the mount is gone, or ends it when a signal says so. The first SIGINT of a terminal
// spares those who still use it.
func (s *service) until(mount *fs.Control, gone func() error) error {
	spared := false
	for {
		select {
		case <-mount.Done():
			return gone()
		case sig := <-s.signals:
			if sig != unix.SIGINT || !s.foreground || spared {
				s.log.Info("ending", "signal", sig.String())
				return s.stop(mount)
			}
			if err := mount.Unmount(); err != nil {
				spared = true
				users, _ := fs.Busy(s.dir)
				s.log.Error("not unmounted, interrupt again to detach it", "err", err, "users", usersText(users))
			}
		}
	}
}

// unmounted says that the mount is gone.
func (s *service) unmounted() error {
	s.log.Info("unmounted", "dir", s.dir)
	s.notify(daemon.SdNotifyStopping)
	return nil
}

// stop ends the mount within --grace; a second signal ends it at once.
func (s *service) stop(mount *fs.Control) error {
	s.notify(daemon.SdNotifyStopping)
	stopped := make(chan error, 1)
	go func() { stopped <- mount.Stop(s.grace) }()
	var err error
	select {
	case err = <-stopped:
	case <-s.signals:
		err = mount.Stop(0)
	}
	if err == nil {
		return nil
	}
	s.log.Warn("ending the mount", "err", err)
	if there, ok, ferr := fs.Find(s.dir); ferr == nil && ok && there.Ours() && errors.Is(err, fs.ErrBusy) {
		users, _ := fs.Busy(s.dir)
		return busy(s.dir, users)
	}
	return nil // what still reads is cut off when the server ends
}

// busy is the failure of a mount that is in use.
func busy(dir string, users []fs.User) error {
	return failf(exitBusy, "%s: %w by %s (weightfs umount --lazy detaches it)", dir, fs.ErrBusy, usersText(users))
}

// usersText names the processes that use a mount.
func usersText(users []fs.User) string {
	if len(users) == 0 {
		return "processes that this user cannot see"
	}
	const most = 10
	var list []string
	for i, u := range users {
		if i == most {
			list = append(list, fmt.Sprintf("%d more", len(users)-i))
			break
		}
		how := u.How
		if u.Path != "" {
			how += " " + u.Path
		}
		list = append(list, fmt.Sprintf("%d %s (%s)", u.PID, u.Command, how))
	}
	return strings.Join(list, ", ")
}
