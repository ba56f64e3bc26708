//go:build linux

package fs

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"
)

// A Control ends a mount. A server that is confined cannot end its own: another process holds a Control
// of it.
type Control struct {
	connection
	log  *slog.Logger
	done <-chan struct{} // closed after the last reply
}

// An ID tells which mount is meant.
type ID struct {
	Dir    string // empty where only the device is known
	Number uint32 // of the connection; 0 where the kernel does not tell
}

// NewControl gives the control of a mount whose server is another process. done is closed when that
// ends.
func NewControl(id ID, done <-chan struct{}, log *slog.Logger) *Control {
	return &Control{connection: connection{place: placeOf(id.Dir), fd: -1, number: id.Number}, log: log, done: done}
}

// ID is what another process needs for a Control of the same mount.
func (c *Control) ID() ID { return ID{c.dir, c.number} }

// Done is closed after the last reply: then shards may be closed.
func (c *Control) Done() <-chan struct{} { return c.done }

// Unmount takes the mount away if nobody uses it, and says ErrBusy otherwise. The kernel may learn a
// moment late that the last file was closed, so it tries a few times.
func (c *Control) Unmount() error {
	for delay := 5 * time.Millisecond; ; delay *= 2 {
		m, ok, err := c.mount()
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
func (c *Control) Detach() error { return c.detach() }

// Clear takes the mount away if its server is gone. The kernel may have given the number of a mount that
// is gone to the next one, even at the same place: what is alive is not ours.
func (c *Control) Clear() error {
	m, ok, err := c.mount()
	if err != nil || !ok || !m.dead() {
		return err
	}
	return m.detach()
}

// settle is how long the kernel may take to tell of an end that has come.
const settle = time.Second

// Stop ends the mount: unmounted, or if it is busy detached and served until the last file is closed,
// at most for grace. Then the connection is aborted, and readers get errors.
func (c *Control) Stop(grace time.Duration) error {
	err := c.Unmount()
	if err == nil {
		grace = max(grace, settle) // a copy of the mount in a container may live on
	} else {
		c.log.Info("the mount is in use and detached", "grace", grace, "err", err)
		err = c.Detach()
	}
	if c.wait(grace) {
		return err
	}
	if aerr := c.abort(); aerr != nil && !errors.Is(aerr, unix.ENOENT) {
		return errors.Join(err, fmt.Errorf("ending the connection: %w", aerr))
	}
	if !c.wait(settle) {
		err = errors.Join(err, errors.New("a read is still at work"))
	}
	return err
}

func (c *Control) wait(d time.Duration) bool {
	select {
	case <-c.done:
		return true
	case <-time.After(d):
		return false
	}
}
