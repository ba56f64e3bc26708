//go:build linux

package fs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// What keeps a mount from being taken away.
var (
	ErrBusy    = errors.New("in use")
	ErrForeign = errors.New("not a mount of weightfs")
)

// Stale tells that at mp lies a mount of ours, made by this user, whose server is gone. A server that
// does not answer is not gone.
func Stale(mp string) (bool, error) {
	m, ok, err := Find(mp)
	if err != nil || !ok || !m.Ours() || m.UID != os.Geteuid() {
		return false, err
	}
	return m.dead(), nil
}

// dead asks with statfs(2), because the kernel answers stat(2) of the root from what it remembers.
func (m Mounted) dead() bool {
	_, err := bounded(func() (st unix.Statfs_t, err error) { return st, unix.Statfs(m.Dir, &st) })
	return errors.Is(err, unix.ENOTCONN)
}

// Clear takes away a mount at mp whose server is gone, and no other.
func Clear(mp string) error {
	stale, err := Stale(mp)
	if err != nil {
		return err
	}
	if !stale {
		return fmt.Errorf("%s: not a dead mount of weightfs", mp)
	}
	m, _, err := Find(mp)
	if err != nil {
		return err
	}
	return m.detach()
}

// Unmount takes away the mount at mp, which must be ours: ErrForeign, ErrBusy.
func Unmount(mp string) error {
	m, err := findOurs(mp)
	if err != nil {
		return err
	}
	return m.unmount()
}

// Detach takes the mount at mp, which must be ours, out of the tree at once: ErrForeign. Who has files open
// there can go on reading them.
func Detach(mp string) error {
	m, err := findOurs(mp)
	if err != nil {
		return err
	}
	return m.detach()
}

// findOurs finds the mount at mp, or says why it is none of ours: ErrForeign.
func findOurs(mp string) (Mounted, error) {
	m, ok, err := Find(mp)
	switch {
	case err != nil:
		return m, err
	case !ok:
		return m, fmt.Errorf("%s: %w: nothing is mounted there", mp, ErrForeign)
	case !m.Ours():
		return m, fmt.Errorf("%s: %w but of type %s", mp, ErrForeign, m.Type)
	}
	return m, nil
}

func (m Mounted) unmount() error { return m.umount(0, "-u") }
func (m Mounted) detach() error  { return m.umount(unix.MNT_DETACH, "-uz") }

// umount asks the kernel, or where that needs root the helper. Both take what is uppermost at a path,
// which may be a mount of somebody else by now.
func (m Mounted) umount(flags int, option string) error {
	top, ok, err := Find(m.Dir)
	if err != nil {
		return err
	}
	if ok && top.Minor != m.Minor {
		return fmt.Errorf("%s: %w: a mount of type %s lies over it", m.Dir, ErrBusy, top.Type)
	}
	err = unix.Unmount(m.Dir, flags|unix.UMOUNT_NOFOLLOW)
	helper := fusermount()
	if errors.Is(err, unix.EPERM) && helper != "" {
		return m.helperUmount(helper, option)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%s: %w", m.Dir, ErrBusy)
	}
	return fmt.Errorf("umount %s: %w", m.Dir, err)
}

func (m Mounted) helperUmount(helper, option string) error {
	var stderr bytes.Buffer
	cmd := exec.Command(helper, option, "--", m.Dir)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stderr = &stderr
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case strings.Contains(stderr.String(), "busy"):
		return fmt.Errorf("%s: %w (%s)", m.Dir, ErrBusy, helperWords(stderr.String(), err))
	}
	return fmt.Errorf("umount %s: %s", m.Dir, helperWords(stderr.String(), err))
}
