package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// pathMeant is a hint at the path that was perhaps meant by one that is not there; empty if none is
// like it.
func pathMeant(path string) string {
	near, ok := nearPath(filepath.Clean(path))
	if !ok || near == filepath.Clean(path) {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", near)
}

// nearPath takes each part of a path that is not there for the entry that is most like it.
func nearPath(path string) (string, bool) {
	if exists(path) {
		return path, true
	}
	dir, ok := nearPath(filepath.Dir(path))
	if !ok {
		return "", false
	}
	base := filepath.Base(path)
	if path := filepath.Join(dir, base); exists(path) {
		return path, true
	}
	base, ok = nearEntry(dir, base)
	return filepath.Join(dir, base), ok
}

// nearEntry is the entry of a directory that is most like a name. One or two letters are like too much.
func nearEntry(dir, name string) (string, bool) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(name) < 3 {
		return "", false
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	i, ok := newSimilar(name).among(len(names), func(i int) string { return names[i] })
	if !ok {
		return "", false
	}
	return names[i], true
}
