package store

import (
	iofs "io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"weightfs/format"
	"weightfs/format/index"
)

// An entry is a name in a directory of the library: a checkpoint, or a directory of more of them.
type entry struct {
	name string
	path string // on disk, whose time and owner it shows

	scan    func() ([]entry, error) // of a directory; nil for a checkpoint
	resolve func() (Place, error)   // of a checkpoint
}

// A folder is a directory above checkpoints.
type folder struct {
	lib *Library
	key string // the path in the tree
	ino uint64
	gen uint64
	e   entry

	mu      sync.Mutex
	scanned time.Time
	names   map[string]int
	entries []entry
}

var (
	_ format.Dir      = (*folder)(nil)
	_ format.Volatile = (*folder)(nil)
)

// Stat shows the directory on disk as it is now.
func (f *folder) Stat() format.Stat { return dirStat(f.e.path, f.ino, f.gen) }

// TTL implements format.Volatile.
func (f *folder) TTL() time.Duration { return ttl }

// Lookup implements format.Dir.
func (f *folder) Lookup(name string) (format.Node, error) {
	e, ok := f.find(name)
	switch {
	case !ok && name == readmeName && f.hasReadme():
		return f.lib.readme(), nil
	case !ok:
		return nil, iofs.ErrNotExist
	}
	if e.scan != nil {
		return f.lib.folder(f.child(name), e), nil
	}
	if _, err := os.Stat(e.path); err != nil {
		if _, err := os.Lstat(e.path); err != nil {
			return nil, iofs.ErrNotExist // it vanished since the scan
		}
	}
	return f.lib.checkpoint(f.child(name)).node(e), nil
}

func (f *folder) child(name string) string { return f.key + "/" + name }

func (f *folder) find(name string) (entry, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	i, ok := f.names[name]
	if !ok {
		return entry{}, false
	}
	return f.entries[i], true
}

// List implements format.Dir.
func (f *folder) List() format.Listing {
	entries := f.list()
	list := make(listing, 0, len(entries)+1)
	if f.hasReadme() {
		list = append(list, format.Dirent{Name: readmeName, Ino: f.lib.ino(f.child(readmeName))})
	}
	for _, e := range entries {
		list = append(list, format.Dirent{Name: e.name, Ino: f.lib.ino(f.child(e.name)), Type: iofs.ModeDir})
	}
	return list
}

// hasReadme tells whether the library's README.txt is shown here: at the top, unless a checkpoint is called so.
func (f *folder) hasReadme() bool {
	if f != f.lib.root {
		return false
	}
	_, taken := f.find(readmeName)
	return !taken
}

// list is the entries as they are now.
func (f *folder) list() []entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	return f.entries
}

// refresh scans again when the last scan is old. A directory that cannot be read any more is empty.
func (f *folder) refresh() {
	if f.names != nil && time.Since(f.scanned) < rescan {
		return
	}
	entries, err := f.e.scan()
	if err != nil {
		entries = nil
	}
	slices.SortFunc(entries, func(a, b entry) int { return naturally(a.name, b.name) })
	f.entries, f.names = entries, make(map[string]int, len(entries))
	for i, e := range entries {
		f.names[e.name] = i
	}
	f.scanned = time.Now()
}

// naturally compares names that differ, for slices.SortFunc.
func naturally(a, b string) int {
	if index.NaturalLess(a, b) {
		return -1
	}
	return 1
}

// A listing is a directory's entries.
type listing []format.Dirent

func (l listing) Len() int               { return len(l) }
func (l listing) At(i int) format.Dirent { return l[i] }
