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

	"weightfs/format/tensor"
	"weightfs/fs"
)

// A server is a mounting that serves.
type server struct {
	*mounting
	starter *os.File // who waits for us; nil in the foreground
	log     *slog.Logger
	logFile *os.File
	signals chan os.Signal
}

// serve mounts and serves until the mount is gone or a signal says to end. The checkpoint stays open:
// the process ends with the mount, and a read that could not be ended may still be at work.
func (m *mounting) serve(starter *os.File) error {
	m.foreground = starter == nil
	log, file, err := m.logger()
	if err != nil {
		return err
	}
	m.fs.Logger = log
	m.fs.Debug = m.threshold(false) <= slog.LevelDebug
	s := &server{mounting: m, starter: starter, log: log, logFile: file, signals: make(chan os.Signal, 4)}
	s.catch()
	counts := m.observe(log)
	c, err := s.prepare()
	if err != nil {
		return err
	}
	mount, err := s.attach(c)
	if err != nil {
		return err
	}
	m.showMetrics(counts, c.health)
	if err := s.announce(c); err != nil {
		s.stop(mount)
		return err
	}
	go c.keep()
	return s.until(mount)
}

// catch wants the signals that end a server. A SIGHUP that nohup(1) turned off stays off. A reader of
// the log that has gone away ends nothing.
func (s *server) catch() {
	signal.Ignore(unix.SIGPIPE)
	signal.Notify(s.signals, unix.SIGINT, unix.SIGTERM)
	if !signal.Ignored(unix.SIGHUP) {
		signal.Notify(s.signals, unix.SIGHUP)
	}
}

// prepare does all that comes before the mount, until a signal: a disk or a network that does not
// answer must not hold that up.
func (s *server) prepare() (*mountable, error) {
	type result struct {
		c   *mountable
		err error
	}
	done := make(chan result, 1)
	go func() {
		c, err := s.read()
		done <- result{c, err}
	}()
	select {
	case r := <-done:
		return r.c, r.err
	case sig := <-s.signals:
		if s.starter != nil {
			return nil, reported{exitInterrupted} // it knows why, or asks
		}
		return nil, failf(exitInterrupted, "%s: %s while it was read", s.source, sig)
	}
}

// read checks the mount point and opens the source.
func (m *mounting) read() (*mountable, error) {
	source := m.source
	if _, err := os.Lstat(source); err == nil {
		if source, err = absolute(source); err != nil { // the server leaves the directory it was started in
			return nil, err
		}
	}
	if err := m.checkMountPoint(source); err != nil {
		return nil, err
	}
	return m.openMountable(source)
}

func (s *server) attach(c *mountable) (*fs.Server, error) {
	opt := s.fs
	opt.Size, opt.Outsiders = int64(c.size), c.many
	if opt.FsName == "" {
		opt.FsName = c.source
	}
	defer s.exclude()()
	if !s.passedDevice() {
		if err := s.clearWay(); err != nil {
			return nil, err
		}
	}
	mount, err := fs.Mount(s.dir, c.root, opt)
	switch {
	case errors.Is(err, fs.ErrNoFUSE):
		return nil, failf(exitNoFUSE, "%s: %w (weightfs ls, cat and cp read a checkpoint without a mount)", s.dir, err)
	case errors.Is(err, fs.ErrRefused):
		return nil, failf(exitRefused, "%s: %w", s.dir, err)
	case err != nil:
		return nil, s.unfit(err)
	}
	return mount, nil
}

// announce says that the tree can be read.
func (s *server) announce(c *mountable) error {
	s.warnAll(c.warnings)
	s.log.Info("mounted", append([]any{"source", c.source, "dir", s.dir}, c.log...)...)
	line := ""
	switch {
	case s.json:
		line = s.readyJSON(c)
	case s.passedDevice() && !s.quiet:
		line = c.sum + ", mounted\n"
	case !s.quiet:
		line = fmt.Sprintf("%s, mounted at %s (weightfs umount %s)\n", c.sum, printable(s.dir), shellWord(s.dir))
	}
	if s.starter != nil {
		return s.detach(line)
	}
	if s.json {
		io.WriteString(s.out, line)
	}
	s.notify(daemon.SdNotifyReady + "\nSTATUS=" + c.sum)
	return nil
}

// notify tells the service manager, if this process is a service and not a service's child.
func (s *server) notify(state string) {
	if s.starter != nil {
		return
	}
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.log.Warn("telling the service manager", "err", err)
	}
}

func (s *server) readyJSON(c *mountable) string {
	warnings := []any{}
	for _, text := range c.warnings {
		warnings = append(warnings, text)
	}
	doc := tensor.Object{{Key: "source", Value: c.source}, {Key: "mountpoint", Value: s.dir}, {Key: "pid", Value: os.Getpid()}}
	doc = append(append(doc, c.facts...), tensor.KV{Key: "warnings", Value: warnings})
	return string(tensor.AppendJSON(nil, doc)) + "\n"
}

// detach leaves the starter's terminal and directory, and tells it what to print. If nobody is there
// any more, nobody wants the mount.
func (s *server) detach(line string) error {
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := s.leaveTerminal(); err != nil {
		return err
	}
	if _, err := io.WriteString(s.starter, readyWord+line); err != nil {
		return fmt.Errorf("nobody waits for the mount: %w", err)
	}
	return s.starter.Close()
}

// leaveTerminal makes the log file standard error, for the runtime's last words.
func (s *server) leaveTerminal() error {
	to := s.logFile
	if to == nil {
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer null.Close()
		to = null
	}
	return os.NewSyscallError("dup3", unix.Dup3(int(to.Fd()), 2, 0))
}

// mostWarnings is how many of a checkpoint's warnings are printed: a set of a thousand files may
// have one for each.
const mostWarnings = 10

func (s *server) warnAll(warnings []string) {
	for i, text := range warnings {
		if i == mostWarnings {
			s.warn(fmt.Sprintf("%d more, see tensors.json", len(warnings)-i))
			break
		}
		s.warn(text)
	}
}

// warn tells the user of something that does not keep the mount from being made: through the log, or
// while the starter is there as a line beside its own.
func (m *mounting) warn(text string) {
	m.fs.Logger.Warn(text)
	if !m.foreground && !m.quiet {
		fmt.Fprintf(m.err, "warning: %s\n", oneLine(text))
	}
}

// until serves until the mount is gone. The first SIGINT of a terminal spares those who still use it.
func (s *server) until(mount *fs.Server) error {
	spared := false
	for {
		select {
		case <-mount.Done():
			s.log.Info("unmounted", "dir", s.dir)
			s.notify(daemon.SdNotifyStopping)
			return nil
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

// stop ends the mount within --grace; a second signal ends it at once.
func (s *server) stop(mount *fs.Server) error {
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
	return nil // what still reads is cut off when this process ends
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

// shellWord quotes a path for a command to copy.
func shellWord(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@%:,=") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(oneLine(s), "'", `'\''`) + "'"
}
