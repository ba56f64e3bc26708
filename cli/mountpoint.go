//go:build linux

package cli

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weightfs/format"
	"weightfs/fs"
)

// passedDevice: the mount is made, and its device is a descriptor of ours (mount.fuse3, containers).
func (m *mounting) passedDevice() bool { return strings.HasPrefix(m.dir, "/dev/fd/") }

// absolute makes a path absolute. A `..` behind a link leads out of what that leads to, as the kernel
// has it; filepath.Abs would strike out the two.
func absolute(path string) (string, error) {
	if path == "" {
		return "", errors.New("has an empty name")
	}
	parts := strings.Split(path, "/")
	for i := len(parts) - 1; i > 0; i-- {
		if parts[i] != ".." {
			continue
		}
		head, err := filepath.EvalSymlinks(strings.Join(parts[:i+1], "/"))
		if err != nil {
			return "", err
		}
		path = head + "/" + strings.Join(parts[i+1:], "/")
		break
	}
	return filepath.Abs(path)
}

// checkMountPoint refuses what a mount would hide or hang on, before anything is read.
func (m *mounting) checkMountPoint(source string) error {
	if m.passedDevice() {
		return nil
	}
	if err := m.clearWay(); err != nil {
		return err
	}
	err := m.checkPlace(source)
	if err != nil {
		if way := m.clearWay(); way != nil {
			return way // another starter was faster, and the directory is its mount
		}
	}
	return err
}

func (m *mounting) checkPlace(source string) error {
	if err := m.checkDirectory(); err != nil {
		if errors.Is(err, iofs.ErrNotExist) && below(m.dir, source) {
			return m.inside(source)
		}
		return err
	}
	if err := m.checkSource(source); err != nil {
		return err
	}
	if m.nonempty || m.automount {
		return nil // listing an automount point would wait for the mount that is to be made
	}
	return m.checkEmpty()
}

// clearWay takes away a dead mount of ours and refuses any other, but that of an automounter, whose
// place this is.
func (m *mounting) clearWay() error {
	for try := 0; ; try++ {
		there, ok, err := fs.Find(m.dir)
		switch {
		case err != nil:
			return m.unfit(err)
		case !ok:
			return nil
		case !there.Ours() && there.Type == "autofs":
			m.automount = true
			return nil
		case !there.Ours() && m.nonempty:
			return nil
		case !there.Ours():
			return failf(exitStale, "%s: a mount of type %s is there already (%s; --nonempty mounts over it)", m.dir, there.Type, there.Source)
		}
		if stale, _ := fs.Stale(m.dir); !stale {
			return failf(exitStale, "%s: %s is mounted there already (weightfs umount takes it away)", m.dir, there.Source)
		}
		switch err := fs.Clear(m.dir); {
		case err == nil:
			m.warn(m.dir + ": cleared a mount whose server had died")
		case try > 2: // not because another starter was faster
			return failf(exitStale, "%s: a dead mount of weightfs is there and cannot be cleared: %w", m.dir, err)
		}
	}
}

// exclude keeps others from mounting at the same place between the last look at it and the mount. It
// does not wait for long: a script may have locked the directory for its own sake.
func (m *mounting) exclude() (done func()) {
	if m.passedDevice() || m.automount {
		return func() {}
	}
	d, err := os.Open(m.dir)
	if err != nil {
		return func() {}
	}
	for range 200 {
		if unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return func() { d.Close() }
}

func (m *mounting) checkDirectory() error {
	st, err := os.Stat(m.dir)
	switch {
	case errors.Is(err, iofs.ErrNotExist) && !exists(m.dir): // nor is it a link that leads nowhere
		return failf(exitMountPoint, "mount point %s: %w (mkdir -p %s)", m.dir, cause(err), format.ShellQuote(m.dir))
	case err != nil:
		return m.unfit(err)
	case !st.IsDir():
		return m.unfit(syscall.ENOTDIR)
	case os.Geteuid() != 0 && unix.Access(m.dir, unix.W_OK) != nil:
		return failf(exitMountPoint, "mount point %s: not writable, and so only for root to mount at", m.dir)
	}
	return nil
}

func (m *mounting) checkEmpty() error {
	d, err := os.Open(m.dir)
	if err != nil {
		return m.unfit(err)
	}
	defer d.Close()
	names, err := d.Readdirnames(1)
	switch {
	case len(names) > 0:
		return failf(exitMountPoint, "mount point %s: not empty (--nonempty mounts over what is there)", m.dir)
	case err != io.EOF:
		return m.unfit(err)
	}
	return nil
}

func (m *mounting) unfit(err error) error {
	return failf(exitMountPoint, "mount point %s: %w", m.dir, cause(err))
}

// checkSource refuses a mount point inside a source that is a directory, or around any source.
func (m *mounting) checkSource(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return nil // not a path, or format.Open says what is wrong
	}
	if st.IsDir() && within(m.dir, path) {
		return m.inside(path)
	}
	return m.checkHidden(path)
}

func (m *mounting) inside(source string) error {
	is := "it is inside the source " + source
	if within(source, m.dir) {
		is = "it is the source itself"
	}
	return failf(exitMountPoint, "mount point %s: %s (%s)", m.dir, is, beside(source))
}

// beside is a hint at a mount point that is in nobody's way.
func beside(source string) string {
	if abs, err := filepath.Abs(source); err == nil {
		source = abs
	}
	return "mount it beside: mkdir " + format.ShellQuote(source+".mnt")
}

// below tells whether a path that is not there would be in a directory.
func below(path, dir string) bool {
	for {
		if _, err := os.Stat(path); err == nil {
			st, err := os.Stat(dir)
			return err == nil && st.IsDir() && within(path, dir)
		}
		path = filepath.Dir(path)
	}
}

// checkHidden refuses a mount that would hide a file of the checkpoint: opening a tensor looks at that
// file again, and would wait for ourselves.
func (m *mounting) checkHidden(path string) error {
	if within(path, m.dir) {
		return failf(exitMountPoint, "mount point %s: it would hide %s of the source (take an empty directory)", m.dir, path)
	}
	return nil
}

// checkShards looks at where the files of the checkpoint are named, and where links of those names
// lead to.
func (m *mounting) checkShards(c *format.Checkpoint) error {
	if m.passedDevice() {
		return nil
	}
	if err := m.checkSource(c.Source); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, s := range c.Shards {
		file, _ := filepath.EvalSymlinks(s.Path)
		for _, dir := range []string{filepath.Dir(s.Path), filepath.Dir(file)} {
			if seen[dir] {
				continue
			}
			seen[dir] = true
			if err := m.checkHidden(dir); err != nil {
				return err
			}
		}
	}
	return nil
}
