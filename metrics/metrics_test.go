package metrics

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"weightfs/format"
)

// file is a tensor's file, of which only the labels matter here.
type file struct{ format.TensorFile }

func (file) View() string        { return "npy" }
func (file) ShardFormat() string { return "gguf" }

func get(t *testing.T, network, addr, path string) (int, string) {
	t.Helper()
	c := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		}}}
	r, err := c.Get("http://mount" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func TestCounts(t *testing.T) {
	m := New("1.2.3")
	m.Opened(file{}, 0)
	m.Opened(file{}, 0)
	m.Closed(file{})
	m.Opened(file{}, syscall.ESTALE)
	m.Read(file{}, 4096, time.Millisecond, 0)
	m.Read(file{}, 0, time.Millisecond, syscall.EIO)
	m.CheckpointOpened(&format.Checkpoint{Took: time.Second, FromIndex: true})
	s, err := m.Serve("127.0.0.1:0", func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	code, text := get(t, "tcp", s.Addr(), "/metrics")
	if code != http.StatusOK {
		t.Fatal(code)
	}
	for _, line := range []string{
		`weightfs_tensor_loads_total{format="gguf",view="npy"} 2`,
		`weightfs_load_latency_seconds_count 1`, `weightfs_served_bytes_total 4096`,
		`weightfs_errors_total{errno="EIO",op="read"} 1`, `weightfs_errors_total{errno="ESTALE",op="open"} 1`,
		`weightfs_open_files 1`, `weightfs_checkpoints 1`, `weightfs_checkpoint_open_seconds_count 1`,
		`weightfs_index_lookups_total{result="hit"} 1`, `weightfs_index_lookups_total{result="miss"} 0`,
		`weightfs_build_info{version="1.2.3"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
}

func TestHealthSaysWhatIsWrong(t *testing.T) {
	var fault error
	s, err := New("").Serve("127.0.0.1:0", func() error { return fault })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if code, text := get(t, "tcp", s.Addr(), "/healthz"); code != http.StatusOK || text != "ok\n" {
		t.Errorf("%d %q", code, text)
	}
	fault = errors.New("a.safetensors: replaced")
	if code, text := get(t, "tcp", s.Addr(), "/healthz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "replaced") {
		t.Errorf("%d %q", code, text)
	}
}

func TestProbesOfADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checks atomic.Int32
		disk := make(chan struct{})
		h := &healthz{check: func() error { checks.Add(1); <-disk; return nil }}
		for range 3 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
			if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "5s") {
				t.Errorf("%d %q", w.Code, w.Body)
			}
		}
		if n := checks.Load(); n != 1 {
			t.Errorf("%d checks hang", n)
		}
		close(disk)
		synctest.Wait()
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil)); w.Code != http.StatusOK {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	})
}

func TestUnixSocketOfAKilledServerIsTakenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	s, err := New("").Serve("unix:"+path, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if code, _ := get(t, "unix", path, "/healthz"); code != http.StatusOK {
		t.Error(code)
	}
	if _, err := New("").Serve(path, nil); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second server: %v", err)
	}
	s.Close()
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is still there")
	}
}

func TestClear(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	there := func() bool { _, err := os.Lstat(path); return err == nil }
	if err := Clear("unix:" + path); err != nil || !there() {
		t.Errorf("a live one: %v", err)
	}
	l.Close()
	if err := Clear("unix:" + path); err != nil || there() {
		t.Errorf("one left behind: %v", err)
	}
	for _, addr := range []string{path, "127.0.0.1:9", ""} {
		if err := Clear(addr); err != nil {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

func TestNoSocketReplacesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New("").Serve(path, nil); err == nil {
		t.Error("no error")
	}
	if b, _ := os.ReadFile(path); string(b) != "x" {
		t.Error("the file is gone")
	}
}

func TestUnfitAddresses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for addr, word := range map[string]string{
		"":                                 "missing port",
		"metrics":                          "missing port",
		"127.0.0.1":                        "missing port",
		"127.0.0.1:65536":                  "invalid port",
		l.Addr().String():                  "in use",
		"unix:":                            "0 bytes",
		"unix:" + strings.Repeat("x", 108): "108 bytes",
		filepath.Join(t.TempDir(), "no/s"): "no such file",
	} {
		badForm := !strings.HasPrefix(word, "in use") && !strings.HasPrefix(word, "no such")
		if err := CheckAddr(addr); (err != nil) != badForm {
			t.Errorf("CheckAddr(%q): %v", addr, err)
		}
		s, err := New("").Serve(addr, nil)
		if err == nil {
			s.Close()
			t.Errorf("%q: no error", addr)
		} else if !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

func TestManyReaders(t *testing.T) {
	m := New("")
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for range 1000 {
				m.Opened(file{}, 0)
				m.Read(file{}, 1, time.Microsecond, 0)
				m.Read(file{}, 0, time.Microsecond, syscall.EIO)
				m.Closed(file{})
			}
		})
	}
	for range 10 {
		if _, err := m.registry.Gather(); err != nil {
			t.Error(err)
		}
	}
	readers.Wait()
	if n := value(t, m.bytes); n != 8000 {
		t.Errorf("%v bytes", n)
	}
	if n := value(t, m.open); n != 0 {
		t.Errorf("%v files are open", n)
	}
}

func value(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var d dto.Metric
	if err := m.Write(&d); err != nil {
		t.Fatal(err)
	}
	return d.GetCounter().GetValue() + d.GetGauge().GetValue()
}
