package format

import (
	iofs "io/fs"
	"strings"
)

// parts/: every directory of the tree as one safetensors file beside it, so that `cp` takes a layer
// out of a model.
const partExt = ".safetensors"

// partsDir is a directory of parts/. Each directory below it is there as a file, and as a directory
// if it has directories itself.
type partsDir struct {
	c    *Checkpoint
	node uint32
}

func (d *partsDir) Stat() Stat { return d.c.dirStat(d.c.nodeIno(slotPartsDir, d.node)) }

func (d *partsDir) Lookup(name string) (Node, error) {
	x := d.c.index
	if dir, ok := strings.CutSuffix(name, partExt); ok {
		if n, ok := x.Child(d.node, dir, false); ok {
			return d.c.assemblyFile(d.c.nodeIno(slotParts, n), n), nil
		}
	}
	if n, ok := x.Child(d.node, name, false); ok && d.c.hasDirs(n) {
		return &partsDir{d.c, n}, nil
	}
	return nil, iofs.ErrNotExist
}

// hasDirs tells whether a node has a directory among its children.
func (c *Checkpoint) hasDirs(node uint32) bool {
	n := &c.index.Nodes[node]
	for i := n.First; i < n.First+n.Count; i++ {
		if !c.index.Nodes[i].Leaf {
			return true
		}
	}
	return false
}

func (d *partsDir) List() Listing {
	var l entries
	n := &d.c.index.Nodes[d.node]
	for i := n.First; i < n.First+n.Count; i++ {
		if d.c.index.Nodes[i].Leaf {
			continue
		}
		name := d.c.index.NodeName(i)
		if d.c.hasDirs(i) {
			l = append(l, Dirent{name, d.c.nodeIno(slotPartsDir, i), iofs.ModeDir})
		}
		l = append(l, Dirent{name + partExt, d.c.nodeIno(slotParts, i), 0})
	}
	return l
}

// entries is a Listing of a slice.
type entries []Dirent

func (l entries) Len() int        { return len(l) }
func (l entries) At(i int) Dirent { return l[i] }
