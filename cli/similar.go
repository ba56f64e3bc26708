package cli

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"weightfs/format"
)

// noTensor says that there is no such tensor, and which one was perhaps meant.
func noTensor(c *format.Checkpoint, name string) error {
	hint := "weightfs ls lists them"
	if near, ok := nearest(c, name); ok {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return failf(exitNoTensor, "%s: no tensor %q (%s)", c.Source, name, hint)
}

// nearest is the tensor, or for a path of a view the path, that was perhaps meant.
func nearest(c *format.Checkpoint, name string) (string, bool) {
	word := strings.Trim(name, "*?")
	if renamed := c.Renamed(word); renamed != word {
		if _, ok := c.ByName(renamed); ok {
			return renamed, true
		}
	}
	view, rest := splitView(word)
	i, ok := newSimilar(rest).among(c.Len(), c.TensorName)
	if !ok {
		return "", false
	}
	t := c.Tensor(i)
	if at, ok := pathIn(c, view, t); ok {
		return at, true
	}
	return t.Name, true
}

// fileExts are what a view's file may end with.
var fileExts = []string{".raw", ".npy", ".json", ".safetensors", ""}

// splitView takes a path of the tree apart: the view, empty for what is none, and what it has of a
// tensor's name.
func splitView(word string) (view, rest string) {
	view, rest, ok := strings.Cut(strings.TrimLeft(path.Clean("/"+word), "/"), "/")
	if !ok || !slices.Contains(format.Views, view) {
		return "", word
	}
	if ext := path.Ext(rest); ext != "" && slices.Contains(fileExts, ext) {
		rest = strings.TrimSuffix(rest, ext)
	}
	return view, rest
}

// pathIn is a tensor's file in a view, if it has one there.
func pathIn(c *format.Checkpoint, view string, t format.Tensor) (string, bool) {
	if view == "" {
		return "", false
	}
	for _, ext := range fileExts {
		at := view + "/" + t.Path + ext
		if _, err := format.Lookup(c.Root(), at); err == nil {
			return at, true
		}
	}
	return "", false
}

// A similar looks for the name that is most like a word: the same but for separators and case, one that
// ends with it or holds it, or one that few letters tell from it.
type similar struct {
	word string
	most int // letters that may differ
	work int // cells of tables that may still be filled: the search ends in time whatever the names are
}

const (
	mostDifferent = 4
	mostWork      = 8 << 20
)

func newSimilar(word string) *similar {
	return &similar{word: plainName(word), most: min(mostDifferent, len(word)/4), work: mostWork}
}

// plainName makes the names of one tensor alike that differ as people write them.
func plainName(name string) string {
	return strings.ToLower(strings.ReplaceAll(strings.Trim(name, "/"), "/", "."))
}

// rank is how good a guess is; less is better.
type rank struct{ kind, size int }

// among finds the best of n names.
func (s *similar) among(n int, name func(i int) string) (best int, ok bool) {
	if s.word == "" {
		return 0, false
	}
	least := rank{kind: 5}
	for i := range n {
		r := s.rank(plainName(name(i)), least)
		if less := cmp.Or(cmp.Compare(r.kind, least.kind), cmp.Compare(r.size, least.size)); less < 0 {
			best, least, ok = i, r, true
		}
		if r.kind == 0 {
			break
		}
	}
	return best, ok
}

func (s *similar) rank(name string, least rank) rank {
	switch {
	case name == s.word:
		return rank{}
	case strings.HasSuffix(name, "."+s.word):
		return rank{1, len(name)}
	case strings.Contains(name, s.word):
		return rank{2, len(name)}
	case least.kind < 3 || s.work <= 0:
		return rank{kind: 5}
	}
	most := s.most
	if least.kind == 3 {
		most = least.size - 1
	}
	if d := s.distance(name, most); d <= most {
		return rank{3, d}
	}
	return rank{kind: 5}
}

// distance is how many letters tell a name from the word; more than most when these are too many.
func (s *similar) distance(name string, most int) int {
	a, b := s.word, name
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a)-len(b) > most || len(b)-len(a) > most || most < 1 || differ(a, b) > 2*most {
		return most + 1
	}
	s.work -= (len(a) + 1) * (len(b) + 1)
	return distance(a, b)
}

// differ counts the letters that two words do not share. A change mends at most two of them.
func differ(a, b string) int {
	var n [256]int16
	for i := range len(a) {
		n[a[i]]++
	}
	for i := range len(b) {
		n[b[i]]--
	}
	sum := 0
	for _, k := range n {
		sum += int(max(k, -k))
	}
	return sum
}
