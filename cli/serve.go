//go:build linux

package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"weightfs/cachedir"
	"weightfs/format"
	"weightfs/format/tensor"
	"weightfs/fs"
	"weightfs/sandbox"
)

// A server answers the requests of a mount.
type server struct {
	*service
	keeper *keeperEnd // who ends the mount for us; nil where we can
}

// serve mounts and serves until the mount is gone or a signal says to end. The checkpoint stays open:
// the process ends with the mount, and a read that could not be ended may still be at work.
func (m *mounting) serve(flags *pflag.FlagSet, starter *os.File, keeper *keeperEnd) error {
	service, err := m.service(starter)
	if err != nil {
		return err
	}
	s := &server{service, keeper}
	switch {
	case keeper == nil && m.confined():
		s.hire(flags)
	case keeper == nil && !m.noSandbox:
		s.log.Info("not confined", "err", sandbox.ErrUnsupported)
	}
	s.fs.Debug = s.threshold(false) <= slog.LevelDebug
	counts := s.observe(s.log)
	c, err := s.prepare()
	if err != nil {
		return err
	}
	defer s.showMetrics(counts, c.health)()
	mount, err := s.attach(c)
	if err != nil {
		return err
	}
	if err := s.announce(c, mount); err != nil {
		s.giveUp(mount)
		return err
	}
	defer cachedir.Abandon()
	go c.keep()
	if s.keeper != nil {
		return s.untilGone(mount)
	}
	return s.until(&mount.Control, s.unmounted)
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
		if !s.foreground {
			return nil, reported{exitInterrupted} // the starter knows why, or asks
		}
		return nil, failf(exitInterrupted, "%s: %s while it was read", s.source, sig)
	case <-s.keeper.lost():
		return nil, s.unkept()
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
	if s.keeper != nil {
		opt.Confine = s.confine(c)
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
func (s *server) announce(c *mountable, mount *fs.Server) error {
	s.warnAll(c.warnings)
	s.log.Info("mounted", append([]any{"source", c.source, "dir", s.dir}, c.log...)...)
	r := &readiness{Line: s.readyLine(c), Status: c.sum, Mount: mount.ID()}
	if s.keeper == nil {
		return s.ready(r)
	}
	if s.keeper.tell(note{Ready: r}) != nil {
		return s.unkept()
	}
	select {
	case <-s.keeper.hears:
	case <-s.keeper.lost():
		return s.unkept()
	}
	if s.starter == nil {
		return nil
	}
	return s.ready(r)
}

// unkept is the failure of a server whose keeper ended before there was anything to keep.
func (s *server) unkept() error {
	if s.keeper.asked() {
		return reported{exitInterrupted} // the starter knows
	}
	return failf(exitTrouble, "%s: the keeper of the mount was ended before it was ready", s.dir)
}

// giveUp ends a mount that nobody wants.
func (s *server) giveUp(mount *fs.Server) {
	if s.keeper == nil {
		s.stop(&mount.Control)
		return
	}
	if s.keeper.tell(note{Signal: unix.SIGTERM}) == nil {
		s.untilGone(mount)
	}
}

func (s *server) readyLine(c *mountable) string {
	switch {
	case s.json:
		return s.readyJSON(c)
	case s.quiet:
		return ""
	case s.passedDevice():
		return c.sum + ", mounted\n"
	}
	line := c.sum + ", mounted at " + printable(s.dir)
	if oneLine(s.dir) == s.dir { // else not every shell could be told on one line
		line += fmt.Sprintf(" (weightfs umount %s)", format.ShellQuote(s.dir))
	}
	return line + "\n"
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

// untilGone serves until the mount is gone. What signals ask for the keeper does, and without it
// nobody could end the mount.
func (s *server) untilGone(mount *fs.Server) error {
	for {
		select {
		case <-mount.Done():
			return s.keeper.tell(note{Done: true})
		case sig := <-s.signals:
			s.keeper.tell(note{Signal: sig.(unix.Signal)})
		case <-s.keeper.lost():
			s.log.Error("the keeper of the mount is gone", "dir", s.dir)
			return reported{exitTrouble}
		}
	}
}
