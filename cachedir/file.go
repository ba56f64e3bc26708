package cachedir

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Write makes a file of the cache, and its directory where there is none. It is written beside its place
// and renamed, so that no reader sees half of it; while the cache is too large the oldest others go.
func Write(path string, content func(io.Writer) error) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	sweep(dir)
	f, err := create(dir, filepath.Ext(path))
	if err != nil {
		return err
	}
	defer f.release()
	if err := errors.Join(content(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	trim(dir, path, most)
	return nil
}

// Used keeps a file from being the oldest.
func Used(path string) {
	now := time.Now()
	os.Chtimes(path, now, now)
}
