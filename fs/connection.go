//go:build linux

package fs

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A connection is the kernel's side of a mount.
type connection struct {
	place
	fd     int    // the open device, until go-fuse has it
	number uint32 // in /sys/fs/fuse/connections; the minor of the mount's device; 0 unknown
}

func (c connection) device() string { return fmt.Sprintf("/dev/fd/%d", c.fd) }

// connectionNumber asks the kernel (6.17 and later tells it of the descriptor) or the mount table.
func connectionNumber(fd int, dir string) uint32 {
	if f, err := os.Open(fmt.Sprintf("/proc/self/fdinfo/%d", fd)); err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			var n uint32
			if _, err := fmt.Sscanf(s.Text(), "fuse_connection: %d", &n); err == nil {
				return n
			}
		}
	}
	if m, ok, err := Find(dir); err == nil && ok && m.Ours() {
		return uint32(m.Minor)
	}
	return 0
}

// errUnknown: a kernel before 6.17 does not say of which mount a passed device is.
var errUnknown = errors.New("the mount of the passed device is not known")

// mount is the connection's entry in the mount table. Where its place could not be had, since a directory
// above was renamed before it was asked for, that is any.
func (c connection) mount() (m Mounted, ok bool, err error) {
	if c.number == 0 {
		return Mounted{}, false, errUnknown
	}
	list, err := Mounts()
	dir := c.now()
	for _, m := range list {
		if uint32(m.Minor) == c.number && (dir == "" || dir == m.Dir || c.above == nil) {
			return m, true, nil
		}
	}
	return Mounted{}, false, err
}

// abort ends the connection: who still waits for an answer gets an error. fusectl is opened without
// mounting it anywhere, since /sys/fs/fuse/connections is often empty.
func (c connection) abort() error {
	name := fmt.Sprintf("%d/abort", c.number)
	fd, err := unix.Open("/sys/fs/fuse/connections/"+name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		var dir int
		if dir, err = openFusectl(); err != nil {
			return err
		}
		defer unix.Close(dir)
		if fd, err = unix.Openat(dir, name, unix.O_WRONLY|unix.O_CLOEXEC, 0); err != nil {
			return os.NewSyscallError("openat "+name, err)
		}
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("1"))
	return os.NewSyscallError("write "+name, err)
}

func openFusectl() (int, error) {
	fs, err := unix.Fsopen("fusectl", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, os.NewSyscallError("fsconfig", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	return fd, os.NewSyscallError("fsmount", err)
}

// readAhead sets how far the kernel reads ahead, which only root may. The mount option and the
// protocol can lower its 128 KiB, not raise them.
func (c connection) readAhead(bytes int) error {
	path := fmt.Sprintf("/sys/class/bdi/0:%d/read_ahead_kb", c.number)
	return os.WriteFile(path, fmt.Appendln(nil, bytes/1024), 0)
}

// detach takes the mount out of the tree whatever still uses it.
func (c connection) detach() error {
	m, ok, err := c.mount()
	if err != nil || !ok {
		return err
	}
	return m.detach()
}
