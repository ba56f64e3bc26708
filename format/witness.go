package format

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A witness is the state of a file, a directory or a link on which the result of opening depends.
type witness struct {
	Path                            string
	Link                            bool // of the link itself, not of where it leads
	Dev, Ino                        uint64
	Size, ModTime, ChangeTime, Mode int64
}

func (w witness) changed() time.Time { return time.Unix(0, max(w.ModTime, w.ChangeTime)) }

// again is the state now.
func (w witness) again() (witness, error) {
	if w.Link {
		return witnessOfLink(w.Path)
	}
	return witnessOf(w.Path)
}

// witnessesOf are those of absolute paths, and of the links on the way to them: a link that is switched
// and switched back looks the same at its end, and is another link.
func witnessesOf(paths []string) (list []witness, err error) {
	way := way{real: map[string]string{}}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		w, err := witnessOf(path)
		if err != nil {
			return nil, err
		}
		if _, err := way.resolve(path); err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	for _, path := range way.links {
		w, err := witnessOfLink(path)
		if err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	return list, nil
}

// A way is the links that paths lead over.
type way struct {
	real  map[string]string
	links []string
}

// mostLinks is far more than the kernel follows.
const mostLinks = 1 << 12

var errLinks = errors.New("too many links")

// resolve gives an absolute path without links.
func (w *way) resolve(path string) (string, error) {
	if real, ok := w.real[path]; ok {
		return real, nil
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path, nil
	}
	dir, err := w.resolve(parent)
	if err != nil {
		return "", err
	}
	real := filepath.Join(dir, filepath.Base(path))
	if target, err := os.Readlink(real); err == nil {
		if w.links = append(w.links, real); len(w.links) > mostLinks {
			return "", errLinks
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		if real, err = w.resolve(target); err != nil {
			return "", err
		}
	}
	w.real[path] = real
	return real, nil
}
