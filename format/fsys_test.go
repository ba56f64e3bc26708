package format

import (
	"io"
	iofs "io/fs"
	"path"
	"time"
)

// NewFS is a tree as an io/fs.FS. Directories list in the tree's natural order: there is no
// ReadDirFS, whose order is fixed. Links are followed within the tree; a link that leads out of it is
// iofs.ErrNotExist to Open, and Lookup shows it as it is.
func NewFS(root Dir) iofs.FS { return fsys{root} }

type fsys struct{ root Dir }

// Open implements fs.FS.
func (f fsys) Open(name string) (iofs.File, error) {
	n, err := Follow(f.root, name)
	if err != nil {
		return nil, &iofs.PathError{Op: "open", Path: name, Err: err}
	}
	info := nodeInfo{path.Base(name), n.Stat()}
	if d, ok := n.(Dir); ok {
		return &openDir{nodeInfo: info, dir: d, list: d.List()}, nil
	}
	file, ok := n.(File)
	if !ok {
		return nil, &iofs.PathError{Op: "open", Path: name, Err: iofs.ErrInvalid}
	}
	c, err := file.Open()
	if err != nil {
		return nil, &iofs.PathError{Op: "open", Path: name, Err: err}
	}
	r := ContentReader{c}
	return &openFile{info, io.NewSectionReader(r, 0, c.Size())}, nil
}

// nodeInfo is a node as an iofs.FileInfo and iofs.DirEntry.
type nodeInfo struct {
	name string
	stat Stat
}

func (i nodeInfo) Name() string                 { return i.name }
func (i nodeInfo) Size() int64                  { return i.stat.Size }
func (i nodeInfo) Mode() iofs.FileMode          { return i.stat.Mode }
func (i nodeInfo) Type() iofs.FileMode          { return i.stat.Mode.Type() }
func (i nodeInfo) ModTime() time.Time           { return i.stat.ModTime }
func (i nodeInfo) IsDir() bool                  { return i.stat.Mode.IsDir() }
func (i nodeInfo) Sys() any                     { return i.stat }
func (i nodeInfo) Info() (iofs.FileInfo, error) { return i, nil }

// openFile is an open file: an io.ReaderAt, io.Seeker and io.WriterTo as well.
type openFile struct {
	info nodeInfo
	*io.SectionReader
}

func (f *openFile) Stat() (iofs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error                 { return nil }

// openDir is an open directory.
type openDir struct {
	nodeInfo
	dir  Dir
	list Listing
	next int
}

func (d *openDir) Stat() (iofs.FileInfo, error) { return d.nodeInfo, nil }
func (d *openDir) Close() error                 { return nil }
func (d *openDir) Read([]byte) (int, error) {
	return 0, &iofs.PathError{Op: "read", Path: d.name, Err: iofs.ErrInvalid}
}

// ReadDir implements fs.ReadDirFile.
func (d *openDir) ReadDir(n int) ([]iofs.DirEntry, error) {
	left := d.list.Len() - d.next
	if n > 0 && left == 0 {
		return nil, io.EOF
	}
	if n > 0 {
		left = min(left, n)
	}
	out := make([]iofs.DirEntry, left)
	for i := range out {
		out[i] = dirEntry{d.dir, d.list.At(d.next)}
		d.next++
	}
	return out, nil
}

// dirEntry is an entry whose node is looked up when its Info is asked for.
type dirEntry struct {
	dir Dir
	Dirent
}

func (e dirEntry) Name() string        { return e.Dirent.Name }
func (e dirEntry) IsDir() bool         { return e.Dirent.Type.IsDir() }
func (e dirEntry) Type() iofs.FileMode { return e.Dirent.Type }

func (e dirEntry) Info() (iofs.FileInfo, error) {
	n, err := e.dir.Lookup(e.Dirent.Name)
	if err != nil {
		return nil, err
	}
	return nodeInfo{e.Dirent.Name, n.Stat()}, nil
}
