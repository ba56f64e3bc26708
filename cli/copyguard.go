package cli

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"weightfs/format"
)

// A guard keeps copies out of the checkpoint's own directories and off its files.
type guard struct {
	dirs  []string
	files []*format.Shard
	made  []string // directories
}

// newGuard finds them. A lone file may lie among anything, such as in the directory that the user is
// in: of it only the file itself is guarded.
func (cp *copying) newGuard() guard {
	c := cp.checkpoint
	g := guard{files: c.Shards}
	st, err := os.Stat(cp.source)
	if err == nil && st.Mode().IsRegular() && len(c.Shards) == 1 {
		return g
	}
	for _, path := range []string{cp.source, c.Source} {
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			g.add(path)
		}
	}
	for _, path := range cp.ownFiles() {
		g.add(filepath.Dir(path))
		if real, err := filepath.EvalSymlinks(path); err == nil {
			g.add(filepath.Dir(real)) // in a hub cache the blobs
		}
	}
	return g
}

func (g *guard) add(dir string) {
	if !slices.Contains(g.dirs, dir) {
		g.dirs = append(g.dirs, dir)
	}
}

// ownFiles are the paths of the checkpoint's files.
func (cp *copying) ownFiles() []string {
	n, err := format.Lookup(cp.tree, "files")
	dir, ok := n.(format.Dir)
	if err != nil || !ok {
		return nil
	}
	var paths []string
	list := dir.List()
	for i := range list.Len() {
		n, err := dir.Lookup(list.At(i).Name)
		if link, ok := n.(format.Link); ok && err == nil {
			paths = append(paths, link.Target())
		}
	}
	return paths
}

// check refuses a directory of the checkpoint.
func (g *guard) check(dir string) error {
	for _, own := range g.dirs {
		if within(dir, own) {
			return usageError("%s: nothing is written into the checkpoint's directory %s", dir, own)
		}
	}
	return nil
}

// mkdir makes a directory unless it is there.
func (g *guard) mkdir(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if !errors.Is(err, iofs.ErrExist) {
		if err != nil {
			return failf(exitTrouble, "%s: %w", dir, cause(err))
		}
		g.made = append(g.made, dir)
		return nil
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return usageError("%s: %w", dir, syscall.ENOTDIR)
	}
	return g.check(dir)
}

// rmdirs takes the directories that it made away again, as far as they are empty: the next copy finds
// what this one found.
func (g *guard) rmdirs() {
	for _, dir := range slices.Backward(g.made) {
		os.Remove(dir)
	}
}

// target gives the file that a copy replaces, or makes: as cp(1) does it follows a link that is there.
func (g *guard) target(to string) (string, error) {
	st, err := os.Lstat(to)
	if err != nil {
		return to, nil // there is none, or writing will say what is wrong
	}
	if st.Mode()&iofs.ModeSymlink != 0 {
		real, err := filepath.EvalSymlinks(to)
		if err != nil {
			return "", usageError("%s: a link is there that leads nowhere", to)
		}
		if err := g.check(filepath.Dir(real)); err != nil {
			return "", err
		}
		to = real
		if st, err = os.Stat(real); err != nil {
			return "", failf(exitTrouble, "%s: %w", real, cause(err))
		}
	}
	switch {
	case st.IsDir():
		return "", usageError("%s: a directory is there, and a file cannot take its place", to)
	case !st.Mode().IsRegular():
		return "", usageError("%s: not a regular file (weightfs cat writes to it)", to)
	}
	for _, own := range g.files {
		if os.SameFile(st, own.Stat()) {
			return "", usageError("%s: it is a file of the checkpoint itself", to)
		}
	}
	return to, nil
}
