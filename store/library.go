package store

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"weightfs/format"
	"weightfs/format/set"
)

// An OpenFunc opens the checkpoint at a place when it is first entered. Every inode number of its
// tree has inoBase added, and every node the generation gen.
type OpenFunc func(p Place, inoBase, gen uint64) (root format.Dir, err error)

// A Library is the tree of a directory that holds several checkpoints: a folder, a hub cache, a
// store of Ollama. Each is a directory, called as it is called, and is opened when it is first
// entered; one that cannot be opened holds an ERROR.txt. Listing parses nothing.
//
// The tree follows the disk: what appears, vanishes or changes is seen within two seconds, and a
// changed checkpoint is another inode (the next Stat.Gen). An earlier state stays open, since files of
// it may be in use.
type Library struct {
	open   OpenFunc
	opt    set.Options
	root   *folder
	readme func() *textFile

	mu          sync.Mutex
	inos        map[string]uint64
	gens        map[string]uint64 // the next Stat.Gen of a name
	folders     map[string]*folder
	checkpoints map[string]*checkpoint
	numbered    uint64 // checkpoints that have a number
	kinds       kindCache
	cached      cacheList
	warnings    []string
}

// ttl is how long a name may be remembered, and rescan how old a listing may be that answers one.
const (
	ttl    = time.Second
	rescan = 500 * time.Millisecond
)

// inoShift leaves 48 bits to the inode numbers within a checkpoint, and 16 to the checkpoint's own;
// 0 is the library itself.
const (
	inoShift       = 48
	maxCheckpoints = 1<<16 - 1
)

// NewLibrary surveys a directory. It is a *set.NoneError when there is no checkpoint below it.
func NewLibrary(dir string, opt set.Options, open OpenFunc) (*Library, error) {
	l := &Library{open: open, opt: opt, inos: map[string]uint64{}, gens: map[string]uint64{}, folders: map[string]*folder{}, checkpoints: map[string]*checkpoint{}}
	look, err := set.Look(dir)
	if err != nil {
		return nil, err
	}
	e := entry{path: dir, scan: l.scanFolder(dir, []string{realPath(dir)})}
	if k := kindOf(look); k.holdsMany() {
		e.scan = l.scan(k, dir, nil)
	} else if rest := look.Rest(); len(rest) > 0 {
		l.warnings = append(l.warnings, "left out: "+set.Enumerate(rest, 10))
	}
	l.root, l.readme = l.folder("", e), sync.OnceValue(l.newReadme)
	if any, err := l.holdsAny(e, &budget{dirs: 20_000, depth: 8}); err != nil || !any {
		return nil, errors.Join(err, &set.NoneError{Dir: dir, Names: look.Dirs})
	}
	return l, nil
}

// A budget bounds the search for a first checkpoint: what is larger is taken for a library.
type budget struct{ dirs, depth int }

func (l *Library) holdsAny(e entry, b *budget) (bool, error) {
	if e.scan == nil || b.dirs == 0 || b.depth == 0 {
		return true, nil
	}
	b.dirs--
	b.depth--
	defer func() { b.depth++ }()
	entries, err := e.scan()
	for _, child := range entries {
		if any, err := l.holdsAny(child, b); err == nil && any {
			return true, nil
		}
	}
	return false, err
}

// Dir is the directory on disk.
func (l *Library) Dir() string { return l.root.e.path }

// Root is the tree. Its directories above the checkpoints are format.Volatile.
func (l *Library) Root() format.Dir { return l.root }

// Warnings name what lies in the directory and is no checkpoint, and checkpoints that hide others.
func (l *Library) Warnings() []string {
	s := screen{lib: l, left: mostCounted}
	s.look("", l.root.list())
	if len(s.found) == 0 {
		return l.warnings
	}
	return append(slices.Clip(l.warnings), "in directories below these are more checkpoints, which are not shown (--many of one of them shows its own): "+set.Enumerate(s.found, 10))
}

// ino numbers the library's own nodes by their paths. A number is for ever the path's.
func (l *Library) ino(key string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.inos[key]
	if !ok {
		n = uint64(len(l.inos)) + 1
		l.inos[key] = n
	}
	return n
}

// number gives a checkpoint its own inode numbers, when it is first opened.
func (l *Library) number(c *checkpoint) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.number == 0 {
		if l.numbered == maxCheckpoints {
			return 0, fmt.Errorf("more than %d checkpoints opened in one mount: mount this one by itself", maxCheckpoints)
		}
		l.numbered++
		c.number = l.numbered
	}
	return c.number, nil
}

// nextGen numbers all that a name has stood for: with the same numbers go-fuse would hand out the node
// that it had. l.mu is held.
func (l *Library) nextGen(key string) uint64 {
	gen := l.gens[key]
	l.gens[key]++
	return gen
}

// folder gives the node of a path in the tree, the same one while the same directory is behind it.
func (l *Library) folder(key string, e entry) *folder {
	ino := l.ino(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.checkpoints, key) // that it was before
	f := l.folders[key]
	if f == nil || f.e.path != e.path {
		f = &folder{lib: l, key: key, ino: ino, gen: l.nextGen(key), e: e}
		l.folders[key] = f
	}
	return f
}

func (l *Library) checkpoint(key string) *checkpoint {
	ino := l.ino(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.folders, key)
	c := l.checkpoints[key]
	if c == nil {
		c = &checkpoint{lib: l, key: key, ino: ino}
		l.checkpoints[key] = c
	}
	return c
}

// dirStat is what shows of a directory that stands for path.
func dirStat(path string, ino, gen uint64) format.Stat {
	st := format.Stat{Ino: ino, Gen: gen, Mode: os.ModeDir | 0o555, Nlink: 2, ModTime: time.Unix(0, 0)}
	info, err := os.Stat(path)
	if err != nil {
		return st
	}
	st.UID, st.GID = format.Owner(info)
	st.ModTime = info.ModTime()
	read := info.Mode().Perm() & 0o444
	st.Mode = os.ModeDir | read | read>>2
	return st
}
