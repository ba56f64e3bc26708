//go:build linux

package fs

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// A Server answers the requests of one mount until that is gone.
type Server struct {
	connection
	fuse *fuse.Server
	log  *slog.Logger
	done chan struct{} // closed after the last reply
}

// serve returns when the kernel says that the mount is gone or aborted, and every handler is done.
func (s *Server) serve() {
	s.fuse.Serve()
	close(s.done)
}

// Done is closed after the last reply: then shards may be closed.
func (s *Server) Done() <-chan struct{} { return s.done }

// Wait returns after the last reply.
func (s *Server) Wait() { <-s.done }

// ready makes one request. Nobody knows where a passed device is mounted; there go-fuse's handshake,
// which is over, has to do.
func (s *Server) ready() error {
	if s.dir == "" {
		return nil
	}
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return fmt.Errorf("the mount at %s does not answer: %w", s.dir, err)
	}
	return nil
}

func (s *Server) readAhead(bytes int) {
	if err := s.connection.readAhead(bytes); err != nil {
		s.log.Debug("read-ahead stays as it is", "err", err)
	}
}

// Unmount takes the mount away if nobody uses it, and says ErrBusy otherwise. The kernel may learn a
// moment late that the last file was closed, so it tries a few times.
func (s *Server) Unmount() error {
	for delay := 5 * time.Millisecond; ; delay *= 2 {
		m, ok, err := s.mount()
		if err != nil || !ok {
			return err // not ok: somebody else has unmounted it
		}
		err = m.unmount()
		if !errors.Is(err, ErrBusy) || delay > 100*time.Millisecond {
			return err
		}
		time.Sleep(delay)
	}
}

// Detach takes the mount out of the tree at once; who has files open there can go on reading them.
func (s *Server) Detach() error { return s.detach() }

// settle is how long the kernel may take to tell of an end that has come.
const settle = time.Second

// Stop ends the mount: unmounted, or if it is busy detached and served until the last file is closed,
// at most for grace. Then the connection is aborted, and readers get errors.
func (s *Server) Stop(grace time.Duration) error {
	err := s.Unmount()
	if err == nil {
		grace = max(grace, settle) // a copy of the mount in a container may live on
	} else {
		s.log.Info("the mount is in use and detached", "grace", grace, "err", err)
		err = s.Detach()
	}
	if s.wait(grace) {
		return err
	}
	if aerr := s.abort(); aerr != nil && !errors.Is(aerr, unix.ENOENT) {
		return errors.Join(err, fmt.Errorf("ending the connection: %w", aerr))
	}
	if !s.wait(settle) {
		err = errors.Join(err, errors.New("a read is still at work"))
	}
	return err
}

func (s *Server) wait(d time.Duration) bool {
	select {
	case <-s.done:
		return true
	case <-time.After(d):
		return false
	}
}
