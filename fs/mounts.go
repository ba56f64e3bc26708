//go:build linux

package fs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
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
