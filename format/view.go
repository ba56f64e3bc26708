package format

import (
	iofs "io/fs"
	"strings"

	"weightfs/format/index"
)

// A view shows every tensor, or those with its flag, as one file each, below the same paths.
type view struct {
	name  string
	ext   string
	block int         // Stat.Block of its files
	slot  int         // of its inode numbers
	flag  index.Flags // a tensor is in the view when it has it; 0: all are
	size  func(c *Checkpoint, t uint32) int64
	open  func(c *Checkpoint, t uint32) (Content, error)
}

// The flags of a tensor: which views show it.
const (
	flagNPY  index.Flags = 1 << iota // its dimensions can stand in a .npy header
	flagF32                          // it can be decoded to float32
	flagRows                         // three dimensions and more, whole bytes a slice
)

var (
	rawView  = &view{name: "raw", ext: ".raw", slot: slotRaw, size: rawSize, open: openRaw}
	jsonView = &view{name: "json", ext: ".json", slot: slotJSON, size: jsonSize, open: openJSON}
	npyView  = &view{name: "npy", ext: ".npy", block: smallBlock, slot: slotNPY, flag: flagNPY, size: npySize, open: openNPY}
	f32View  = &view{name: "f32", ext: ".npy", block: smallBlock, slot: slotF32, flag: flagF32, size: f32Size, open: openF32}

	statsView = &view{name: "stats", ext: ".json", slot: slotStats, size: statsSize, open: openStats}
)

// Views are the names of all views, in the order in which the mount lists them.
var Views = []string{"raw", "json", "npy", "f32", "rows", "stats", "parts", "by-name", "assembled", "files"}

// markViews says of each tensor which views show it.
func (c *Checkpoint) markViews() {
	c.index.MarkViews(flagRows, func(t uint32) (f index.Flags) {
		info := c.index.Info(t)
		if npyCan(info.DType.ByteShape(info.Shape, info.Bytes)) {
			f |= flagNPY
		}
		if f&flagNPY != 0 && c.f32Can(t) {
			f |= flagF32
		}
		if f&flagNPY != 0 && rowsCan(&info) {
			f |= flagRows
		}
		return f
	})
}

// viewDir is a directory of a view: a node of the index.
type viewDir struct {
	c    *Checkpoint
	view *view
	node uint32
}

func (d *viewDir) Stat() Stat { return d.c.dirStat(d.c.nodeIno(d.view.slot, d.node)) }

func (d *viewDir) Lookup(name string) (Node, error) {
	x := d.c.index
	if stem, ok := strings.CutSuffix(name, d.view.ext); ok {
		if n, ok := x.Child(d.node, stem, true); ok && d.view.shows(x, n) {
			return &tensorFile{c: d.c, view: d.view, tensor: x.Nodes[n].First}, nil
		}
	}
	if n, ok := x.Child(d.node, name, false); ok && d.view.shows(x, n) {
		return &viewDir{d.c, d.view, n}, nil
	}
	return nil, iofs.ErrNotExist
}

// shows tells whether a node has a place in the view: a tensor, or a directory that leads to one.
func (v *view) shows(x *index.Index, node uint32) bool { return x.Nodes[node].Flags&v.flag == v.flag }

func (d *viewDir) List() Listing {
	x := d.c.index
	n := &x.Nodes[d.node]
	l := &viewListing{d: d, first: n.First, n: int(n.Count)}
	for i := range n.Count {
		if !d.view.shows(x, n.First+i) {
			l.filter(n.First, n.Count)
			break
		}
	}
	return l
}

// viewListing lists a directory's nodes: all of them, or those that the view shows.
type viewListing struct {
	d     *viewDir
	first uint32
	n     int
	some  []uint32
}

func (l *viewListing) filter(first, count uint32) {
	l.some = []uint32{}
	for i := first; i < first+count; i++ {
		if l.d.view.shows(l.d.c.index, i) {
			l.some = append(l.some, i)
		}
	}
	l.n = len(l.some)
}

func (l *viewListing) Len() int { return l.n }

// node is the i-th node that the view shows.
func (l *viewListing) node(i int) uint32 {
	if l.some != nil {
		return l.some[i]
	}
	return l.first + uint32(i)
}

func (l *viewListing) At(i int) Dirent {
	n := l.node(i)
	x := l.d.c.index
	e := Dirent{Name: x.NodeName(n), Ino: l.d.c.nodeIno(l.d.view.slot, n)}
	if x.Nodes[n].Leaf {
		e.Name += l.d.view.ext
	} else {
		e.Type = iofs.ModeDir
	}
	return e
}

// tensorFile is one tensor in one view.
type tensorFile struct {
	c      *Checkpoint
	view   *view
	tensor uint32
}

func (f *tensorFile) Stat() Stat {
	r := &f.c.index.Records[f.tensor]
	st := f.c.fileStat(f.c.stats[r.File], f.c.nodeIno(f.view.slot, r.Node), f.view.size(f.c, f.tensor))
	st.Block = f.view.block
	return st
}

func (f *tensorFile) Open() (Content, error) {
	if err := f.c.Shards[f.c.index.Records[f.tensor].File].Fresh(); err != nil {
		return nil, err
	}
	return f.view.open(f.c, f.tensor)
}

func (f *tensorFile) View() string { return f.view.name }
func (f *tensorFile) ShardFormat() string {
	return f.c.Shards[f.c.index.Records[f.tensor].File].Format
}

func (f *tensorFile) Tensor() Tensor { return f.c.Tensor(int(f.tensor)) }
