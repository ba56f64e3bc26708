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
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := health(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "ok\n")
	})
	s := &Server{&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}, l}
	go s.http.Serve(l)
	return s, nil
}

// Addr is where the server listens: a TCP address with the port that was chosen for port 0.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends the server, and removes its socket.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return s.http.Shutdown(ctx)
}

func listen(addr string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(addr, "unix:")
	if !isUnix && !filepath.IsAbs(path) {
		return net.Listen("tcp", addr)
	}
	l, err := net.Listen("unix", path)
	if err == nil || !abandoned(path) {
		return l, err
	}
	if err := os.Remove(path); err != nil {
		return nil, err
	}
	return net.Listen("unix", path)
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
