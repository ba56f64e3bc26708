//go:build linux

package fs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// What keeps a mount from being taken away.
var (
	ErrBusy    = errors.New("in use")
	ErrForeign = errors.New("not a mount of weightfs")
)

// A Mounted is an entry of the mount table.
type Mounted struct {
	Source       string
	Dir          string // the mount point
	Root         string // what of the mounted tree is there: "/" for all of it
	Type         string
	Major, Minor int
	UID          int // of who mounted it, -1 unless it is FUSE
}

// Ours tells that weightfs made the mount.
func (m Mounted) Ours() bool { return m.Type == fsType }

// Mounts lists the mounts of weightfs in this mount namespace.
func Mounts() ([]Mounted, error) {
	return mountTable(mountinfo.FSTypeFilter(fsType))
}

// Find gives the uppermost mount at mp, of any kind. It looks in the mount table alone, so that a
// mount which answers nothing cannot hang it.
func Find(mp string) (m Mounted, ok bool, err error) {
	dir, err := realpath(mp)
	if err != nil {
		return Mounted{}, false, err
	}
	list, err := mountTable(func(m *mountinfo.Info) (skip, stop bool) { return m.Mountpoint != dir, false })
	if err != nil || len(list) == 0 {
		return Mounted{}, false, err
	}
	return list[len(list)-1], true, nil
}

// Around gives the mount of weightfs that shows a path, and where that is without links. Of a mount of
// only a part of a tree, as containers have it, it tells nothing.
func Around(path string) (m Mounted, real string, ok bool) {
	real, err := realpath(path)
	if err != nil {
		return Mounted{}, "", false
	}
	list, err := mountTable(func(m *mountinfo.Info) (skip, stop bool) {
		rel, err := filepath.Rel(m.Mountpoint, real)
		return err != nil || !filepath.IsLocal(rel), false
	})
	if err != nil || len(list) == 0 {
		return Mounted{}, "", false
	}
	for _, inner := range list {
		if len(inner.Dir) >= len(m.Dir) {
			m = inner // or, at the same place, upon it
		}
	}
	return m, real, m.Ours() && m.Root == "/"
}

func mountTable(filter mountinfo.FilterFunc) ([]Mounted, error) {
	infos, err := mountinfo.GetMounts(filter)
	if err != nil {
		return nil, err
	}
	list := make([]Mounted, len(infos))
	for i, m := range infos {
		list[i] = Mounted{Source: m.Source, Dir: m.Mountpoint, Root: m.Root, Type: m.FSType, Major: m.Major, Minor: m.Minor, UID: userID(m.VFSOptions)}
	}
	return list, nil
}

func userID(options string) int {
	for _, o := range strings.Split(options, ",") {
		var uid int
		if _, err := fmt.Sscanf(o, "user_id=%d", &uid); err == nil {
			return uid
		}
	}
	return -1
}

// realpath resolves mp as the mount table has it.
func realpath(mp string) (string, error) {
	return bounded(func() (string, error) { return resolve(mp) })
}

// resolve does not ask the file system that is mounted at mp: readlink(2) of a mount's root fails
// before it gets that far, lstat(2) does not.
func resolve(mp string) (string, error) {
	path, err := filepath.Abs(mp)
	if err != nil {
		return "", err
	}
	for range 40 {
		parent, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		path = filepath.Join(parent, filepath.Base(path))
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(parent, target)
		}
		path = target
	}
	return "", fmt.Errorf("%s: %w", mp, unix.ELOOP)
}

// probeTime is how long a look at a mount may take. One that is stuck keeps its goroutine for good.
const probeTime = 2 * time.Second

var errNoAnswer = errors.New("no answer")

func bounded[T any](probe func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	c := make(chan result, 1)
	go func() {
		v, err := probe()
		c <- result{v, err}
	}()
	select {
	case r := <-c:
		return r.value, r.err
	case <-time.After(probeTime):
		var none T
		return none, errNoAnswer
	}
}

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
	m, ok, err := Find(mp)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("%s: %w: nothing is mounted there", mp, ErrForeign)
	case !m.Ours():
		return fmt.Errorf("%s: %w but of type %s", mp, ErrForeign, m.Type)
	}
	return m.unmount()
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
	return fmt.Errorf("%s", helperWords(stderr.String(), err))
}
