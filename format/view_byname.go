package format

import (
	"cmp"
	iofs "io/fs"
	"slices"

	"weightfs/format/index"
)

// by-name/: a link for each tensor, flat, called as the tensor is.

// flatNames is the listing of by-name/, made when it is first entered: two names that were cut to
// one get `~2`.
type flatNames struct {
	names   []string
	tensors []uint32
}

func (c *Checkpoint) flatNames() *flatNames {
	f := &flatNames{names: make([]string, c.Len()), tensors: make([]uint32, c.Len())}
	names := make([]string, c.Len())
	for i := range c.Len() {
		names[i] = index.Flat(c.index.Name(uint32(i)))
		f.tensors[i] = uint32(i)
	}
	slices.SortFunc(f.tensors, func(s, t uint32) int {
		return cmp.Or(index.CompareNatural(names[s], names[t]), cmp.Compare(s, t))
	})
	for i, t := range f.tensors {
		f.names[i] = names[t]
		if i > 0 && names[t] == names[f.tensors[i-1]] {
			f.names[i] = index.Numbered(names[t], i+1)
		}
	}
	return f
}

func (f *flatNames) find(name string) (int, bool) {
	return slices.BinarySearchFunc(f.names, name, index.CompareNatural)
}

// byNameDir is by-name/.
type byNameDir struct{ c *Checkpoint }

func (d byNameDir) Stat() Stat { return d.c.dirStat(d.c.nodeIno(slotByName, 0)) }

func (d byNameDir) Lookup(name string) (Node, error) {
	t, ok := d.c.ByName(name) // nearly every name stands for itself
	if !ok || index.Flat(name) != name {
		f := d.c.byName()
		i, found := f.find(name)
		if !found {
			return nil, iofs.ErrNotExist
		}
		t = int(f.tensors[i])
	}
	r := &d.c.index.Records[t]
	target := "../" + rawView.name + "/" + d.c.index.Path(r.Node) + rawView.ext
	return d.c.link(d.c.nodeIno(slotByName, r.Node), target), nil
}

func (d byNameDir) List() Listing { return byNameListing{d.c, d.c.byName()} }

type byNameListing struct {
	c *Checkpoint
	f *flatNames
}

func (l byNameListing) Len() int { return len(l.f.names) }

func (l byNameListing) At(i int) Dirent {
	node := l.c.index.Records[l.f.tensors[i]].Node
	return Dirent{l.f.names[i], l.c.nodeIno(slotByName, node), iofs.ModeSymlink}
}
