package store

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"weightfs/format/set"
)

// A kind is what a directory is to a library, by the names in it.
type kind uint8

const (
	nothing  kind = iota // no weights, and nothing below
	lone                 // one checkpoint
	many                 // several, or directories that may hold some
	hubCache             // folders models--org--name
	hubRepo              // one of these
	ollama               // blobs and manifests
)

// holdsMany tells the kinds whose names are not the disk's.
func (k kind) holdsMany() bool { return k == hubCache || k == hubRepo || k == ollama }

func kindOf(look *set.Survey) kind {
	has := func(name string) bool { return slices.Contains(look.Dirs, name) }
	switch {
	case has("blobs") && (has("manifests") || has("manifests-v2")):
		return ollama
	case has("snapshots") && (has("blobs") || has("refs")):
		return hubRepo
	case slices.ContainsFunc(look.Dirs, func(name string) bool { return strings.HasPrefix(name, repoPrefix) }):
		return hubCache
	case look.Choice != "":
		return lone
	case len(look.Candidates) > 0 || len(look.Dirs) > 0:
		return many
	}
	return nothing
}

// A kindCache remembers the kinds of directories that have not changed.
type kindCache struct {
	mu    sync.Mutex
	kinds map[string]knownKind
}

type knownKind struct {
	info os.FileInfo
	kind kind
}

// settled is how old a change of a directory must be before its time stands for its content: a file
// system's clock may tick in whole seconds.
const settled = 2 * time.Second

// of surveys a directory, unless it is known to be as it was.
func (c *kindCache) of(dir string) kind {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return nothing
	}
	c.mu.Lock()
	known, ok := c.kinds[dir]
	c.mu.Unlock()
	if ok && same(known.info, info) {
		return known.kind
	}
	look, err := set.Look(dir)
	if err != nil {
		return nothing
	}
	k := kindOf(look)
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(info.ModTime()) < settled {
		delete(c.kinds, dir)
		return k
	}
	if c.kinds == nil {
		c.kinds = map[string]knownKind{}
	}
	c.kinds[dir] = knownKind{info, k}
	return k
}

// same tells whether a file is still the one it was.
func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// entriesOf makes entries of many names side by side, in their order.
func entriesOf(names []string, of func(name string) []entry) []entry {
	found := make([][]entry, len(names))
	var group errgroup.Group
	group.SetLimit(2 * runtime.GOMAXPROCS(0))
	const batch = 64
	for begin := 0; begin < len(names); begin += batch {
		group.Go(func() error {
			for i := begin; i < min(begin+batch, len(names)); i++ {
				found[i] = of(names[i])
			}
			return nil
		})
	}
	group.Wait()
	return slices.Concat(found...)
}

// scan gives the scan of a directory of a kind. chain is the real paths of the directories above.
func (l *Library) scan(k kind, dir string, chain []string) func() ([]entry, error) {
	switch k {
	case hubCache:
		return func() ([]entry, error) { return l.scanCache(dir) }
	case hubRepo:
		return func() ([]entry, error) { return l.revisions(repo{dir: dir, source: dir}, filepath.Base(dir)), nil }
	case ollama:
		return func() ([]entry, error) { return scanOllama(dir) }
	}
	return l.scanFolder(dir, chain)
}

// maxDepth bounds how deep directories of checkpoints may nest.
const maxDepth = 32

// scanFolder finds the checkpoints in a plain directory: each file that is one, each directory that
// is one, and directories that may hold some.
func (l *Library) scanFolder(dir string, chain []string) func() ([]entry, error) {
	return func() ([]entry, error) {
		look, err := set.Look(dir)
		if err != nil {
			return nil, err
		}
		entries := make([]entry, 0, len(look.Candidates))
		for _, name := range look.Candidates {
			entries = append(entries, atPath(name, filepath.Join(dir, name)))
		}
		return append(entries, entriesOf(look.Dirs, func(name string) []entry {
			return l.below(name, filepath.Join(dir, name), chain)
		})...), nil
	}
}

// below is a directory's entry in the one above it, if it has any.
func (l *Library) below(name, dir string, chain []string) []entry {
	switch k := l.kinds.of(dir); k {
	case nothing:
		return nil
	case lone:
		return []entry{atPath(name, dir)}
	default:
		real := realPath(dir)
		if pseudo(real) || slices.Contains(chain, real) || len(chain) == maxDepth || isLink(dir) && (leadsUp(chain, real) || followed(chain)) {
			return nil
		}
		return []entry{{name: name, path: dir, scan: l.scan(k, dir, append(slices.Clip(chain), real))}}
	}
}

// A tree must end, and not be the whole disk: no link is followed to a directory above it, and behind
// one link to a directory of checkpoints no other is.

// pseudo tells the kernel's own trees, which hold no models and much else.
func pseudo(real string) bool {
	for _, top := range []string{"/proc", "/sys", "/dev"} {
		if real == top || strings.HasPrefix(real, top+"/") && !strings.HasPrefix(real, "/dev/shm/") {
			return true
		}
	}
	return false
}

func isLink(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.Mode()&os.ModeSymlink != 0
}

// leadsUp tells whether a directory is one of those above the last of a chain, in the chain or not.
func leadsUp(chain []string, real string) bool {
	if len(chain) == 0 {
		return false
	}
	rel, err := filepath.Rel(real, chain[len(chain)-1])
	return err == nil && filepath.IsLocal(rel)
}

// followed tells whether a link led from one directory of a chain to the next.
func followed(chain []string) bool {
	for i := 1; i < len(chain); i++ {
		if filepath.Dir(chain[i]) != chain[i-1] {
			return true
		}
	}
	return false
}

// atPath is a checkpoint that is found by its path.
func atPath(name, path string) entry {
	return entry{name: name, path: path, resolve: func() (Place, error) { return Place{Path: path, Display: path}, nil }}
}

func realPath(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path
	}
	if abs, err := filepath.Abs(real); err == nil {
		return abs
	}
	return real
}
