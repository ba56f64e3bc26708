package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/singleflight"
)

// A Server answers /metrics and /healthz.
type Server struct {
	http     *http.Server
	listener net.Listener
}

// Serve listens at a TCP address (`127.0.0.1:9464`) or a unix socket (`unix:/run/weightfs.sock`, or
// an absolute path). health says what is wrong with the mount, nil when nothing is.
func (m *Metrics) Serve(addr string, health func() error) (*Server, error) {
	l, err := listen(addr)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.Handle("GET /healthz", &healthz{check: health})
	s := &Server{&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}, l}
	go s.http.Serve(l)
	return s, nil
}

// healthz answers for one check at a time, however often it is asked: on a disk that hangs, each
// would hang.
type healthz struct {
	check   func() error
	running singleflight.Group
}

// healthTime is how long a check may take: longer than a busy disk, shorter than most probes' patience.
const healthTime = 5 * time.Second

func (h *healthz) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var err error
	select {
	case done := <-h.running.DoChan("", func() (any, error) { return nil, h.check() }):
		err = done.Err
	case <-time.After(healthTime):
		err = fmt.Errorf("no answer from the disk in %v", healthTime)
	case <-r.Context().Done():
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ok\n")
}

// Addr is where the server listens: a TCP address with the port that was chosen for port 0.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends the server, and removes its socket.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return s.http.Shutdown(ctx)
}

// maxSocketPath is what sun_path holds beside its NUL. Linux would take an empty path for a wish for
// an address of its own choice.
const maxSocketPath = 107

// parse gives the network and the address of what Serve takes.
func parse(addr string) (network, address string, err error) {
	path, isUnix := strings.CutPrefix(addr, "unix:")
	if isUnix || filepath.IsAbs(path) {
		if path == "" || len(path) > maxSocketPath {
			return "", "", fmt.Errorf("path of a unix socket has %d bytes, not 1 to %d", len(path), maxSocketPath)
		}
		return "unix", path, nil
	}
	_, port, err := net.SplitHostPort(addr) // net.Listen takes "" for any port of every network
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	return "tcp", addr, err
}

// CheckAddr says what is wrong with an address at which no Serve could listen.
func CheckAddr(addr string) error {
	if _, _, err := parse(addr); err != nil {
		return fmt.Errorf("neither HOST:PORT (127.0.0.1:9464) nor unix:PATH: %w", err)
	}
	return nil
}

func listen(addr string) (net.Listener, error) {
	network, address, err := parse(addr)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen(network, address)
	if err == nil || network != "unix" || !abandoned(address) {
		return l, err
	}
	if err := os.Remove(address); err != nil {
		return nil, err
	}
	return net.Listen(network, address)
}

// Clear removes the socket that a server which is gone has left at addr.
func Clear(addr string) error {
	network, path, err := parse(addr)
	if err != nil || network != "unix" || !abandoned(path) {
		return nil
	}
	return os.Remove(path)
}

// abandoned tells that a socket is left over from a server that was killed: nobody answers there.
func abandoned(path string) bool {
	st, err := os.Lstat(path)
	if err != nil || st.Mode().Type() != os.ModeSocket {
		return false
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return false
	}
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout()
}
