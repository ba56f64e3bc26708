package format

import (
	"fmt"
	iofs "io/fs"
	"strconv"
	"strings"

	"weightfs/format/index"
	"weightfs/format/tensor"
)

// rows/: a directory for each tensor of three dimensions and more, with one .npy for each slice of
// dimension 0: an expert out of a fused tensor.

// maxRows bounds the slices of a tensor that is given a directory: inode numbers are finite.
const maxRows = 1 << 24

func rowsCan(info *tensor.Info) bool {
	if len(info.Shape) < 3 || info.Shape[0] == 0 || info.Shape[0] > maxRows {
		return false
	}
	row, err := info.DType.Size(info.Shape[1:], false)
	return err == nil && uint64(row)*info.Shape[0] == uint64(info.Bytes)
}

// rowsView is rows/ but for its leaves, which are directories.
var rowsView = &view{name: "rows", slot: slotRows, flag: flagRows}

// rowsDir is a directory of rows/ that stands for a directory of the index.
type rowsDir struct{ viewDir }

func (d *rowsDir) Lookup(name string) (Node, error) {
	x := d.c.index
	if n, ok := x.Child(d.node, name, false); ok && rowsView.shows(x, n) {
		return &rowsDir{viewDir{d.c, rowsView, n}}, nil
	}
	stems := []string{name}
	if i := strings.LastIndexByte(name, '~'); i >= 0 {
		stems = append(stems, name[:i])
	}
	for _, stem := range stems {
		if n, ok := x.Child(d.node, stem, true); ok && rowsView.shows(x, n) && d.leafName(n) == name {
			return &sliceDir{d.c, x.Nodes[n].First}, nil
		}
	}
	return nil, iofs.ErrNotExist
}

// leafName is the name of a leaf's directory: its stem or, where a directory of the tree has that name
// (`x` is a tensor, and x.y.z another), the first of stem~2, stem~3, … that nothing else has.
func (d *rowsDir) leafName(leaf uint32) string {
	stem := d.c.index.NodeName(leaf)
	if !d.has(stem, false) {
		return stem
	}
	for n := 2; ; n++ {
		if name := index.Numbered(stem, n); !d.has(name, true) && !d.has(name, false) {
			return name
		}
	}
}

// has tells whether a leaf or a directory of that name is there.
func (d *rowsDir) has(name string, leaf bool) bool {
	n, ok := d.c.index.Child(d.node, name, leaf)
	return ok && rowsView.shows(d.c.index, n)
}

func (d *rowsDir) List() Listing { return rowsListing{d, d.viewDir.List().(*viewListing)} }

// rowsListing shows leaves as the directories that they are here.
type rowsListing struct {
	d *rowsDir
	*viewListing
}

func (l rowsListing) At(i int) Dirent {
	n := l.node(i)
	e := Dirent{Name: l.d.c.index.NodeName(n), Ino: l.d.c.nodeIno(slotRows, n), Type: iofs.ModeDir}
	if l.d.c.index.Nodes[n].Leaf {
		e.Name = l.d.leafName(n)
	}
	return e
}

// sliceDir holds the slices of one tensor: 0.npy, 1.npy, …
type sliceDir struct {
	c      *Checkpoint
	tensor uint32
}

func (d *sliceDir) Stat() Stat {
	return d.c.dirStat(d.c.nodeIno(slotRows, d.c.index.Records[d.tensor].Node))
}

func (d *sliceDir) List() Listing { return d }
func (d *sliceDir) Len() int      { return int(d.c.index.Shape(d.tensor)[0]) }

func (d *sliceDir) At(i int) Dirent {
	return Dirent{Name: strconv.Itoa(i) + ".npy", Ino: d.ino(i)}
}

func (d *sliceDir) ino(i int) uint64 {
	return d.c.ino(inoRows + uint64(d.c.index.RowStart(d.tensor)) + uint64(i))
}

func (d *sliceDir) Lookup(name string) (Node, error) {
	var i int
	if _, err := fmt.Sscanf(name, "%d.npy", &i); err != nil || i < 0 || i >= d.Len() || d.At(i).Name != name {
		return nil, iofs.ErrNotExist
	}
	return &sliceFile{d, i}, nil
}

// sliceFile is one slice of dimension 0 as a .npy.
type sliceFile struct {
	dir *sliceDir
	row int
}

func (f *sliceFile) header() ([]byte, int64) {
	info := f.dir.c.index.Info(f.dir.tensor)
	size := info.Bytes / int64(info.Shape[0])
	return npyHeader(info.DType.Descr(), info.DType.ByteShape(info.Shape[1:], size)), size
}

func (f *sliceFile) Stat() Stat {
	head, size := f.header()
	c := f.dir.c
	st := c.fileStat(c.stats[c.index.Records[f.dir.tensor].File], f.dir.ino(f.row), int64(len(head))+size)
	st.Block = smallBlock
	return st
}

func (f *sliceFile) Open() (Content, error) {
	c := f.dir.c
	if err := c.Shards[c.index.Records[f.dir.tensor].File].Fresh(); err != nil {
		return nil, err
	}
	seg, err := c.elements(f.dir.tensor)
	if err != nil {
		return nil, err
	}
	head, size := f.header()
	return newSegments(Literal(head), seg.slice(int64(f.row)*size, size)), nil
}

func (f *sliceFile) View() string { return "rows" }
func (f *sliceFile) ShardFormat() string {
	return f.dir.c.Shards[f.dir.c.index.Records[f.dir.tensor].File].Format
}

func (f *sliceFile) Tensor() Tensor { return f.dir.c.Tensor(int(f.dir.tensor)) }
