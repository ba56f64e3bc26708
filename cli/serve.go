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
	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"

	"weightfs/format"
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

// serve mounts and serves until the mount is gone or a signal says to end.
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
	if err := m.checkMountPoint(); err != nil {
		return err
	}
	c, err := s.read()
	if err != nil {
		return err
	}
	// The process ends with the mount. Closing the checkpoint before that could take the bytes away
	// from a read that is still at work.
	return s.mountAndServe(c)
}

// catch wants the signals that end a server. A SIGHUP that nohup(1) turned off stays off.
func (s *server) catch() {
	signal.Notify(s.signals, unix.SIGINT, unix.SIGTERM)
	if !signal.Ignored(unix.SIGHUP) {
		signal.Notify(s.signals, unix.SIGHUP)
	}
}

// read opens the checkpoint, until a signal comes: a slow disk or network must not hold that up.
func (s *server) read() (*format.Checkpoint, error) {
	type result struct {
		c   *format.Checkpoint
		err error
	}
	done := make(chan result, 1)
	go func() {
		c, err := s.open(s.source)
		done <- result{c, err}
	}()
	select {
	case r := <-done:
		return r.c, r.err
	case sig := <-s.signals:
		return nil, failf(exitInterrupted, "%s: %s while it was read", s.source, sig)
	}
}

func (s *server) mountAndServe(c *format.Checkpoint) error {
	if err := s.checkShards(c); err != nil {
		return err
	}
	opt := s.fs
	opt.Size = int64(c.TotalBytes())
	if opt.FsName == "" {
		opt.FsName = c.Source
	}
	mount, err := fs.Mount(s.dir, c.Root(), opt)
	if err != nil {
		return mountFault(s.dir, err)
	}
	if err := s.announce(c); err != nil {
		s.stop(mount)
		return err
	}
	return s.until(mount)
}

// announce says that the tree can be read.
func (s *server) announce(c *format.Checkpoint) error {
	s.warnAll(c.Warnings)
	sum := plural(c.Len(), "tensor") + ", " + humanize.BytesN(c.TotalBytes(), 3)
	s.log.Info("mounted", "source", c.Source, "dir", s.dir, "tensors", c.Len(), "bytes", c.TotalBytes())
	line := ""
	switch {
	case s.json:
		line = s.readyJSON(c)
	case !s.quiet:
		line = fmt.Sprintf("%s, mounted at %s (weightfs umount %s)\n", sum, printable(s.dir), printable(s.dir))
	}
	if s.starter != nil {
		return s.detach(line)
	}
	if s.json {
		io.WriteString(s.out, line)
	}
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady+"\nSTATUS="+sum); err != nil {
		s.log.Warn("telling the service manager", "err", err)
	}
	return nil
}

func (s *server) readyJSON(c *format.Checkpoint) string {
	warnings := []any{}
	for _, text := range c.Warnings {
		warnings = append(warnings, text)
	}
	return string(tensor.AppendJSON(nil, tensor.Object{
		{Key: "source", Value: c.Source}, {Key: "mountpoint", Value: s.dir}, {Key: "pid", Value: os.Getpid()},
		{Key: "tensors", Value: c.Len()}, {Key: "total_bytes", Value: c.TotalBytes()}, {Key: "warnings", Value: warnings},
	})) + "\n"
}

// detach leaves the starter's terminal and directory, and tells it what to print. If nobody is there
// any more, nobody wants the mount.
func (s *server) detach(line string) error {
	if err := os.Chdir("/"); err != nil {
		return err
	}
	last := s.logFile // of the runtime's last words
	if last == nil {
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer null.Close()
		last = null
	}
	if err := unix.Dup3(int(last.Fd()), 2, 0); err != nil {
		return os.NewSyscallError("dup3", err)
	}
	if _, err := io.WriteString(s.starter, readyWord+line); err != nil {
		return fmt.Errorf("nobody waits for the mount: %w", err)
	}
	return s.starter.Close()
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
			notifyStopping()
			return nil
		case sig := <-s.signals:
			if sig != unix.SIGINT || !s.foreground || spared {
				s.log.Info("ending", "signal", sig.String())
				return s.stop(mount)
			}
			if err := mount.Unmount(); err != nil {
				spared = true
				users, _ := fs.Busy(s.dir)
				s.log.Warn("not unmounted, interrupt again to detach it", "err", err, "users", usersText(users))
			}
		}
	}
}

func notifyStopping() { daemon.SdNotify(false, daemon.SdNotifyStopping) }

// stop ends the mount within --grace; a second signal ends it at once.
func (s *server) stop(mount *fs.Server) error {
	notifyStopping()
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

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
