package format

import (
	iofs "io/fs"
)

// A fixedDir is a directory whose few entries are known by name.
type fixedDir struct {
	stat    Stat
	entries []fixedEntry // in the order in which they are listed
}

type fixedEntry struct {
	name string
	typ  iofs.FileMode
	ino  uint64
	node func() (Node, error) // made when it is looked up
}

func (d *fixedDir) Stat() Stat       { return d.stat }
func (d *fixedDir) List() Listing    { return d }
func (d *fixedDir) Len() int         { return len(d.entries) }
func (d *fixedDir) At(i int) Dirent  { e := &d.entries[i]; return Dirent{e.name, e.ino, e.typ} }
func (d *fixedDir) add(e fixedEntry) { d.entries = append(d.entries, e) }
func (d *fixedDir) addNode(name string, n Node) {
	st := n.Stat()
	d.add(fixedEntry{name, st.Mode.Type(), st.Ino, func() (Node, error) { return n, nil }})
}

func (d *fixedDir) Lookup(name string) (Node, error) {
	for i := range d.entries {
		if d.entries[i].name == name {
			return d.entries[i].node()
		}
	}
	return nil, iofs.ErrNotExist
}

// A link is a symbolic link.
type link struct {
	stat   Stat
	target string
}

func (l *link) Stat() Stat     { return l.stat }
func (l *link) Target() string { return l.target }

func (c *Checkpoint) link(ino uint64, target string) *link {
	st := c.spanning
	st.Ino, st.Gen, st.Nlink, st.Size = ino, c.opt.Gen, 1, int64(len(target))
	st.Mode = iofs.ModeSymlink | 0o777
	return &link{st, target}
}

// A fileNode is a file whose content is made when it is opened.
type fileNode struct {
	stat Stat
	open func() (Content, error)
}

func (f *fileNode) Stat() Stat             { return f.stat }
func (f *fileNode) Open() (Content, error) { return f.open() }
