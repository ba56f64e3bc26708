package set

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxSideSize  = 64 << 20
	maxSideFiles = 1024
)

// addSide takes the files of the directory that are neither weights nor an index.
func (s *Set) addSide(look *Survey) {
	root := s.Dir
	if repo := snapshotRepo(s.Dir); repo != "" {
		root = repo
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return
	}
	for _, name := range look.files {
		if isWeights(name) || isIndex(name) || name == s.Index || slices.Contains(s.Files, name) {
			continue
		}
		if len(s.Side) == maxSideFiles {
			s.Warnings = append(s.Warnings, fmt.Sprintf("of the other files only the first %d are shown", maxSideFiles))
			return
		}
		if sideFile(root, s.Path(name)) {
			s.Side = append(s.Side, name)
		}
	}
}

// sideFile tells whether a file is small and stays inside root: a link out of a checkpoint that
// somebody else packed would carry the user's own files into assembled/.
func sideFile(root, path string) bool {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxSideSize {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(root, real)
	return err == nil && filepath.IsLocal(rel)
}

// snapshotRepo is the repository's folder of a directory in a hub cache: of
// models--org--name/snapshots/REV and what is below it. Empty when dir is elsewhere.
func snapshotRepo(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	if repo := repoAbove(abs); repo != "" {
		return repo
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return ""
	}
	return repoAbove(real)
}

func repoAbove(dir string) string {
	for {
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		if filepath.Base(parent) == "snapshots" {
			repo := filepath.Dir(parent)
			if st, err := os.Stat(filepath.Join(repo, "blobs")); err == nil && st.IsDir() {
				return repo
			}
		}
		dir = parent
	}
}

// RepoID is the id of a hub cache's folder: `org/name` of `models--org--name`. Other names stay.
func RepoID(folder string) string {
	id, ok := strings.CutPrefix(folder, "models--")
	if !ok {
		return folder
	}
	return strings.ReplaceAll(id, "--", "/")
}
