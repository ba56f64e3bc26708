package set

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxParts bounds what a name may claim: `x-1-of-99999999.gguf` is not a reason to list the rest.
const maxParts = 1 << 16

var (
	// model-00001-of-00002.safetensors, model_00001-of-00072.safetensors, and with a variant
	// model.fp16-00001-of-00002.safetensors and model-00001-of-00002.fp16.safetensors.
	ofTotal = regexp.MustCompile(`^(.+?)([-_.])([0-9]{1,6})-of-([0-9]{1,6})(\.[^/]+)$`)
	// consolidated.00.pth: the total is in no name.
	consolidated = regexp.MustCompile(`^(consolidated)(\.)([0-9]{2})(\.[a-z]+)$`)
)

// A part is the name of one file of a numbered set, taken apart.
type part struct {
	partSet
	number int
	digits string
}

// A partSet is what the names of all parts of a set share.
type partSet struct {
	stem  string // `model`
	sep   string
	total string // as written; empty where the names do not tell it
	ext   string // with a variant before it
}

// Slice tells that a file is consolidated.NN.pth: one of a set, or a piece of every tensor for a processor
// of its own. Named by itself it stands alone.
func Slice(name string) bool {
	p, ok := parsePart(filepath.Base(name))
	return ok && p.total == ""
}

// parsePart takes apart a name that is one of a set's.
func parsePart(name string) (part, bool) {
	m := ofTotal.FindStringSubmatch(name)
	if m == nil {
		if m = consolidated.FindStringSubmatch(name); m == nil {
			return part{}, false
		}
		m = slices.Insert(m, 4, "")
	}
	p := part{partSet: partSet{stem: m[1], sep: m[2], total: m[4], ext: m[5]}, digits: m[3]}
	p.number, _ = strconv.Atoi(m[3])
	if p.total != "" {
		total, _ := strconv.Atoi(p.total)
		if total < 1 || total > maxParts || p.number > total {
			return part{}, false
		}
	}
	return p, familyOf(name) != nil
}

// A numberedSet is the files of a directory whose names are one set's.
type numberedSet struct {
	partSet
	width int // of the numbers
	parts map[int]string
}

// group sorts names into numbered sets, in order of their first part, and the rest.
func group(names []string) (sets []*numberedSet, rest []string) {
	found := map[partSet]*numberedSet{}
	for _, name := range names {
		p, ok := parsePart(name)
		if !ok {
			rest = append(rest, name)
			continue
		}
		g := found[p.partSet]
		if g == nil {
			g = &numberedSet{partSet: p.partSet, parts: map[int]string{}}
			found[p.partSet] = g
			sets = append(sets, g)
		}
		if other, taken := g.parts[p.number]; taken && other != name {
			rest = append(rest, name) // m-1-of-2 and m-01-of-2
			continue
		}
		g.parts[p.number] = name
		if g.width == 0 || p.digits[0] == '0' || len(p.digits) < g.width {
			g.width = len(p.digits)
		}
	}
	return sets, rest
}

// name is the set's name as one file.
func (g *numberedSet) name() string { return g.stem + g.ext }

// first is the file that stands for the set.
func (g *numberedSet) first() string {
	for _, name := range g.files() {
		if g.has(name) {
			return name
		}
	}
	return g.name()
}

// bounds are the first and the last number: sets count from 1, and from 0 where a part 0 is there.
func (g *numberedSet) bounds() (first, last int) {
	if g.total == "" {
		for n := range g.parts {
			last = max(last, n)
		}
		return 0, last
	}
	total, _ := strconv.Atoi(g.total)
	if _, zero := g.parts[0]; zero {
		return 0, total - 1
	}
	return 1, total
}

// files lists all parts that the set must have, there or not.
func (g *numberedSet) files() []string {
	first, last := g.bounds()
	all := make([]string, 0, last-first+1)
	for n := first; n <= last; n++ {
		name, ok := g.parts[n]
		if !ok {
			name = g.partName(n)
		}
		all = append(all, name)
	}
	return all
}

func (g *numberedSet) partName(n int) string {
	of := ""
	if g.total != "" {
		of = "-of-" + g.total
	}
	return fmt.Sprintf("%s%s%0*d%s%s", g.stem, g.sep, g.width, n, of, g.ext)
}

func (g *numberedSet) has(name string) bool {
	p, ok := parsePart(name)
	return ok && g.parts[p.number] == name
}

func (g *numberedSet) complete() bool {
	first, last := g.bounds()
	for n := first; n <= last; n++ {
		if _, ok := g.parts[n]; !ok {
			return false
		}
	}
	return true
}

// modelStem is the stem with the variant, wherever the name has it: of model-00001-of-00002.fp16.bin
// it is `model.fp16`.
func (g *numberedSet) modelStem() string {
	return g.stem + strings.TrimSuffix(g.ext, filepath.Ext(g.ext))
}
