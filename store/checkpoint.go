package store

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weightfs/format"
	"weightfs/format/set"
	"weightfs/format/tensor"
)

// A checkpoint is a name in a library through all the states that it has on disk.
type checkpoint struct {
	lib    *Library
	key    string
	ino    uint64
	number uint64 // of its inode numbers; 0 until it is opened

	mu  sync.Mutex
	now *generation
}

// A generation is one state of a checkpoint: the directory that stands for it, which opens it when
// it is entered.
type generation struct {
	c    *checkpoint
	e    entry
	stat format.Stat

	once   sync.Once
	loaded atomic.Bool
	root   format.Dir // after once
	err    error      // why root is no checkpoint
	since  time.Time  // when it was loaded
	seen   watch
}

var (
	_ format.Dir      = (*generation)(nil)
	_ format.Volatile = (*generation)(nil)
)

// node gives the present state: the next one when the files are no longer those that were opened.
func (c *checkpoint) node(e entry) *generation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil || c.now.e.path != e.path || !c.now.fresh() {
		c.now = c.generation(e)
	}
	return c.now
}

func (c *checkpoint) generation(e entry) *generation {
	c.lib.mu.Lock()
	gen := c.lib.nextGen(c.key)
	c.lib.mu.Unlock()
	return &generation{c: c, e: e, stat: dirStat(e.path, c.ino, gen)}
}

// Stat implements format.Node.
func (g *generation) Stat() format.Stat { return g.stat }

// TTL implements format.Volatile.
func (g *generation) TTL() time.Duration { return ttl }

// Lookup implements format.Dir.
func (g *generation) Lookup(name string) (format.Node, error) { return g.enter().Lookup(name) }

// List implements format.Dir.
func (g *generation) List() format.Listing { return g.enter().List() }

// enter opens the checkpoint the first time.
func (g *generation) enter() format.Dir {
	g.once.Do(func() {
		g.root, g.err = g.load()
		if g.err != nil {
			g.root = g.failed(g.err)
		}
		g.since = time.Now()
		g.loaded.Store(true)
	})
	return g.root
}

// load notes the state of the files before it opens them, so that a change in between is seen later.
func (g *generation) load() (format.Dir, error) {
	g.seen = watch{}
	g.seen.add(g.e.path)
	place, err := g.e.resolve()
	if err != nil {
		g.seen.addMissing(err)
		return nil, err
	}
	number, err := g.c.lib.number(g.c)
	if err != nil {
		return nil, err
	}
	g.seen.follow(place, g.c.lib.opt)
	root, err := g.c.lib.open(place, number<<inoShift, g.stat.Gen)
	if err != nil {
		g.seen.addMissing(err)
		return nil, err
	}
	return root, nil
}

// patience is how long a checkpoint that cannot be opened is left so when its files do not change:
// the reason may be its permissions, or too many open files.
const patience = 5 * time.Second

// fresh tells whether the files are those that were opened. One that was never entered is whatever
// it is when it is.
func (g *generation) fresh() bool {
	if !g.loaded.Load() {
		return true
	}
	if g.err != nil && time.Since(g.since) > patience {
		return false
	}
	return g.seen.unchanged(g.c.lib.opt)
}

// failed is a directory of one file that says why.
func (g *generation) failed(err error) format.Dir {
	const name = "ERROR.txt"
	st := g.stat
	if fault, ok := errors.AsType[*tensor.FormatError](err); ok && fault.File != "" {
		st = readersOf(fault.File, st)
	}
	st.Ino = g.c.lib.ino(g.c.key + "/" + name)
	st.Mode = st.Mode.Perm() & 0o444
	text := []byte(err.Error() + "\n")
	st.Nlink, st.Size = 1, int64(len(text))
	return &textDir{stat: g.stat, name: name, text: &textFile{st, text}}
}

// readersOf gives what tells of a file to those who may read that: a fault may quote it, and a link in a
// directory that all may read leads to any file. Of one that is gone nobody is told.
func readersOf(path string, st format.Stat) format.Stat {
	info, err := os.Stat(path)
	if err != nil {
		st.Mode = 0
		return st
	}
	st.UID, st.GID = format.Owner(info)
	st.Mode = info.Mode()
	return st
}

// A textDir holds one file of text.
type textDir struct {
	stat format.Stat
	name string
	text *textFile
}

func (d *textDir) Stat() format.Stat { return d.stat }

func (d *textDir) Lookup(name string) (format.Node, error) {
	if name != d.name {
		return nil, iofs.ErrNotExist
	}
	return d.text, nil
}

func (d *textDir) List() format.Listing { return listing{{Name: d.name, Ino: d.text.stat.Ino}} }

// A textFile is a file and its own content.
type textFile struct {
	stat format.Stat
	text []byte
}

func (f *textFile) Stat() format.Stat                     { return f.stat }
func (f *textFile) Open() (format.Content, error)         { return f, nil }
func (f *textFile) Size() int64                           { return f.stat.Size }
func (f *textFile) Segment(int64) (format.Segment, int64) { return format.Literal(f.text), 0 }

// A watch is files as they were, of one checkpoint.
type watch struct {
	files []watched
	place Place
	set   *set.Set // nil when none was found

	mu  sync.Mutex
	dir watched // of a checkpoint that is a directory: names in it may come and go
}

type watched struct {
	path string
	info os.FileInfo // nil when there was none
}

func look(path string) watched {
	info, err := os.Stat(path)
	if err != nil {
		info = nil
	}
	return watched{path, info}
}

func (w watched) unchanged() bool {
	now := look(w.path)
	if w.info == nil || now.info == nil {
		return w.info == nil && now.info == nil
	}
	return w.info.IsDir() && now.info.IsDir() || same(w.info, now.info)
}

func (w *watch) add(path string) { w.files = append(w.files, look(path)) }

// addMissing watches for the files that an error misses.
func (w *watch) addMissing(err error) {
	fault, ok := errors.AsType[*set.IncompleteError](err)
	if !ok {
		return
	}
	for _, a := range fault.Missing {
		w.add(filepath.Join(fault.Dir, filepath.FromSlash(a.Name)))
	}
}

// follow watches the files of the checkpoint at a place.
func (w *watch) follow(p Place, opt set.Options) {
	w.place = p
	if isDir(p.Path) {
		w.dir = look(p.Path)
	}
	s, err := p.Find(opt)
	if err != nil {
		w.addMissing(err)
		return
	}
	w.set = s
	for _, name := range slices.Concat(s.Files, s.Missing, s.Side) {
		w.add(s.Path(name))
	}
	if s.Index != "" {
		w.add(s.Path(s.Index))
	}
}

// unchanged looks at every file again, and at the names beside them when the directory changed.
func (w *watch) unchanged(opt set.Options) bool {
	for _, f := range w.files {
		if !f.unchanged() {
			return false
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := look(w.dir.path)
	switch {
	case w.dir.path == "" || w.dir.info != nil && now.info != nil && same(w.dir.info, now.info):
		return true
	case now.info == nil || w.set == nil:
		return false
	}
	s, err := w.place.Find(opt)
	if err != nil || s.Index != w.set.Index || !slices.Equal(s.Files, w.set.Files) ||
		!slices.Equal(s.Missing, w.set.Missing) || !slices.Equal(s.Side, w.set.Side) {
		return false
	}
	w.dir = now
	return true
}
