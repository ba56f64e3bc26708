//go:build linux

package fs

import (
	"fmt"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// A Server answers the requests of one mount until that is gone.
type Server struct {
	Control
	fuse *fuse.Server
}

// serve starts to answer. done is closed when the kernel has said that the mount is gone or aborted, and
// every handler is done.
func (s *Server) serve() {
	done := make(chan struct{})
	s.done = done
	go func() {
		s.fuse.Serve()
		s.close()
		close(done)
	}()
}

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
