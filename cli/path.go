package cli

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
)

// cause is an error without the path that it names once more.
func cause(err error) error {
	if path, ok := errors.AsType[*iofs.PathError](err); ok {
		return path.Err
	}
	return err
}

// within tells whether path is dir or below it, by whatever link or bind mount.
func within(path, dir string) bool {
	top, err := os.Stat(dir)
	if err != nil {
		return false
	}
	path, err = filepath.EvalSymlinks(path)
	for err == nil {
		st, serr := os.Stat(path)
		if serr == nil && os.SameFile(st, top) {
			return true
		}
		parent := filepath.Dir(path)
		if parent == path { // the root, of a drive on Windows
			break
		}
		path = parent
	}
	return false
}
