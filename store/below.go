package store

import (
	"path/filepath"
	"slices"
	"strings"

	"weightfs/format/set"
)

// WalkOthers finds the checkpoints in a directory besides the one that it is: the files beside it, and all
// in the directories below. A mount of that one does not show them. Their names are relative to the
// directory. Its own files in directories, as an index names them, are none of them.
func WalkOthers(p Place, visit func(Found)) {
	if p.Blobs == nil {
		walkOthers(p.Path, "", nil, visit)
	}
}

func walkOthers(dir, prefix string, chain []string, visit func(Found)) {
	if !isDir(dir) {
		return
	}
	real := realPath(dir)
	if slices.Contains(chain, real) || len(chain) == maxDepth {
		return
	}
	chain = append(slices.Clip(chain), real)
	l := &Library{}
	var walk func(prefix string, entries []entry)
	walk = func(prefix string, entries []entry) {
		slices.SortFunc(entries, func(a, b entry) int { return naturally(a.name, b.name) })
		for _, e := range entries {
			name := prefix + e.name
			if e.scan != nil {
				entries, _ := e.scan()
				walk(name+"/", entries)
				continue
			}
			place, err := e.resolve()
			visit(Found{Name: name, Place: place, Err: err})
			if err == nil && place.Blobs == nil {
				walkOthers(place.Path, name+"/", chain, visit)
			}
		}
	}
	look, err := set.Look(dir)
	if err != nil || kindOf(look) != lone || len(look.Candidates) == 1 && len(look.Dirs) == 0 {
		return // to find the set is to parse its index
	}
	own := ownNames(look)
	walk(prefix, append(beside(look, own), l.belowLone(look, own, chain)...))
}

// ownNames are the files of the checkpoint that a directory is, and what else stands for it there.
func ownNames(look *set.Survey) map[string]bool {
	own := map[string]bool{look.Choice: true}
	if s, err := set.Find(look.Dir, set.Options{Partial: true}); err == nil {
		for _, file := range slices.Concat(s.Files, s.Missing) {
			own[file] = true
		}
	}
	return own
}

// beside are the files in a directory that are checkpoints of their own.
func beside(look *set.Survey, own map[string]bool) (entries []entry) {
	for _, name := range look.Candidates {
		if !own[name] {
			entries = append(entries, atPath(name, filepath.Join(look.Dir, name)))
		}
	}
	return entries
}

// belowLone are the entries of the directories below one that is a checkpoint, but those of its own files.
func (l *Library) belowLone(look *set.Survey, own map[string]bool, chain []string) []entry {
	tops := map[string]bool{}
	for file := range own {
		if top, _, below := strings.Cut(file, "/"); below {
			tops[top] = true
		}
	}
	dirs := slices.DeleteFunc(slices.Clone(look.Dirs), func(name string) bool { return tops[name] })
	return entriesOf(dirs, func(name string) []entry { return l.below(name, filepath.Join(look.Dir, name), chain) })
}

// hidden are the entries of a lone checkpoint's directories.
func (l *Library) hidden(dir string, chain []string) []entry {
	look, err := set.Look(dir)
	if err != nil || kindOf(look) != lone || len(look.Dirs) == 0 {
		return nil // to find the set is to parse its index
	}
	return l.belowLone(look, ownNames(look), chain)
}

// mostCounted bounds how many directories are read to count checkpoints: what is larger is not counted.
const mostCounted = 200

// CountBelow counts by their names the checkpoints that WalkOthers would find below first: those of the
// directories below and, where these are directories of checkpoints, of the ones in them. A snapshot of
// the hub's cache is one checkpoint whatever is below it. all is false when there may be more.
func CountBelow(p Place) (n int, all bool) {
	if p.Blobs != nil || !isDir(p.Path) || hubFolder(realPath(p.Path)) != "" {
		return 0, true
	}
	l := &Library{}
	c := counter{left: mostCounted}
	c.add(l.hidden(p.Path, []string{realPath(p.Path)}))
	return c.n, c.left >= 0
}

// Count is the number of the library's checkpoints by their names. all is false when there may be more.
func (l *Library) Count() (n int, all bool) {
	c := counter{left: mostCounted}
	c.add(l.root.list())
	return c.n, c.left >= 0
}

type counter struct{ n, left int }

func (c *counter) add(entries []entry) {
	for _, e := range entries {
		if e.scan == nil {
			c.n++
			continue
		}
		if c.left--; c.left < 0 {
			return
		}
		below, _ := e.scan()
		c.add(below)
	}
}

// A screen finds the checkpoints of a library that are directories with others below them, which nothing
// else in the tree shows.
type screen struct {
	lib   *Library
	left  int // directories that may still be read
	found []string
}

func (s *screen) look(prefix string, entries []entry) {
	for _, e := range entries {
		if e.scan == nil && (!isDir(e.path) || hubFolder(realPath(e.path)) != "") {
			continue
		}
		if s.left--; s.left < 0 {
			return
		}
		if e.scan != nil {
			below, _ := e.scan()
			s.look(prefix+e.name+"/", below)
			continue
		}
		c := counter{left: s.left}
		c.add(s.lib.hidden(e.path, []string{realPath(e.path)}))
		s.left = c.left
		if c.n > 0 {
			s.found = append(s.found, prefix+e.name)
		}
	}
}
