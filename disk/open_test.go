//go:build unix

package disk

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A FIFO in the place of a file once held up whoever opened it, for good.
func TestOpenOfAFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		_, _, err := Open(path)
		opened <- err
	}()
	select {
	case err := <-opened:
		if err == nil {
			t.Error("opened")
		}
	case <-time.After(10 * time.Second):
		t.Error("waits for a writer")
		writer, err := os.OpenFile(path, os.O_RDWR, 0)
		if err == nil {
			defer writer.Close()
			<-opened
		}
	}
}
