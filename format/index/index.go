// Package index holds what opening a checkpoint found, its tensors and the directory tree over their
// names, in flat arrays without a pointer. So it costs a garbage collector nothing, can be written to
// a file as it is, and a file of it can be used in place, without work for each tensor.
package index

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"weightfs/format/tensor"
)

// Text is a range of the index's text.
type Text struct{ Off, Len uint32 }

// A Record is one tensor. What few tensors have stands aside.
type Record struct {
	Off   int64 // of its extent
	Bytes int64 // of the elements in raw/
	Name  Text
	Dims  uint32 // first of its dimensions
	Node  uint32 // its leaf in the tree
	File  uint32 // number of the shard that holds its bytes
	aside uint32 // 1 + where what only some tensors have stands, 0 for none
	Rank  uint16
	DType uint8
	_     [5]uint8
}

// aside is what only some tensors have.
type aside struct {
	Len      int64  // of the extent, where there is a layout
	RowStart int64  // slices of dimension 0 of the tensors before it, of those in rows/
	Extra    Text   // more members of its json/ object, rendered
	Layout   uint32 // 1 + its layout, 0 for none
	_        [4]uint8
}

// A Node is a directory or a leaf of the tree. The children of a directory stand side by side in
// natural order, behind their parent: node 0 is the root.
type Node struct {
	Name   Text
	Parent uint32
	First  uint32 // of a directory: its first child; of a leaf: its tensor
	Count  uint32 // of a directory
	Flags  Flags  // of a leaf; a directory has the flags of all that is below it
	Leaf   bool
	_      [1]uint8
}

// Flags say which views show a tensor; format gives them their meaning.
type Flags uint16

// layout is a tensor.Layout; its strides stand among the dimensions.
type layout struct {
	Unpacked, Skip int64
	Strides        uint32 // 1 + the first, 0 for none
	CRC32          uint32
	Pack           uint8
	Bits           uint8
	_              [6]uint8
}

const (
	bitSwap = 1 << iota
	bitNeg
	bitConj
)

// An Index is immutable once Build, Read or MarkViews is done, and safe for concurrent use.
type Index struct {
	Records []Record
	Nodes   []Node
	asides  []aside
	layouts []layout
	dims    []uint64
	text    string
}

// none is what a tensor without an aside has.
var none aside

func (x *Index) aside(r *Record) *aside {
	if r.aside == 0 {
		return &none
	}
	return &x.asides[r.aside-1]
}

// String is the text of a range.
func (x *Index) String(t Text) string { return x.text[t.Off : t.Off+t.Len] }

// Mentions tells whether a word stands in any name.
func (x *Index) Mentions(word string) bool { return strings.Contains(x.text, word) }

// Name is a tensor's name as stored.
func (x *Index) Name(tensor uint32) string { return x.String(x.Records[tensor].Name) }

// Shape is a tensor's shape; the caller must not change it.
func (x *Index) Shape(i uint32) []uint64 {
	r := &x.Records[i]
	end := r.Dims + uint32(r.Rank)
	return x.dims[r.Dims:end:end]
}

// Extra is what else json/ tells of a tensor: rendered members, without braces.
func (x *Index) Extra(i uint32) string { return x.String(x.aside(&x.Records[i]).Extra) }

// Plain tells that a tensor's elements are one range of its file.
func (x *Index) Plain(i uint32) bool { return x.aside(&x.Records[i]).Layout == 0 }

// RowStart is how many slices of dimension 0 the tensors of rows/ before this one have.
func (x *Index) RowStart(i uint32) int64 { return x.aside(&x.Records[i]).RowStart }

// Info is a tensor as its parser described it, but for Extra.
func (x *Index) Info(i uint32) tensor.Info {
	r := &x.Records[i]
	info := tensor.Info{
		Name: x.Name(i), DType: tensor.DType(r.DType), Shape: x.Shape(i), Bytes: r.Bytes,
		Extent: tensor.Extent{Off: r.Off, Len: r.Bytes},
	}
	if a := x.aside(r); a.Layout != 0 {
		info.Extent.Len = a.Len
		info.Layout = x.layout(r, &x.layouts[a.Layout-1])
	}
	return info
}

func (x *Index) layout(r *Record, l *layout) *tensor.Layout {
	out := &tensor.Layout{
		Pack: tensor.Pack(l.Pack), Unpacked: l.Unpacked, Skip: l.Skip, CRC32: l.CRC32,
		Swap: l.Bits&bitSwap != 0, Neg: l.Bits&bitNeg != 0, Conj: l.Bits&bitConj != 0,
	}
	if l.Strides != 0 {
		out.Strides = make([]int64, r.Rank)
		for i := range out.Strides {
			out.Strides[i] = int64(x.dims[l.Strides-1+uint32(i)])
		}
	}
	return out
}

// NodeName is a node's name: a directory's, or a leaf's stem.
func (x *Index) NodeName(node uint32) string { return x.String(x.Nodes[node].Name) }

// Path is the path of a node below a view, without extension; empty for the root.
func (x *Index) Path(node uint32) string {
	var parts []string
	for ; node != 0; node = x.Nodes[node].Parent {
		parts = append(parts, x.NodeName(node))
	}
	slices.Reverse(parts)
	return strings.Join(parts, "/")
}

// Child finds a child of a directory by its name (a leaf's stem).
func (x *Index) Child(dir uint32, name string, leaf bool) (uint32, bool) {
	d := &x.Nodes[dir]
	want := key{name, leaf}
	n := sort.Search(int(d.Count), func(i int) bool {
		c := d.First + uint32(i)
		return compare(key{x.NodeName(c), x.Nodes[c].Leaf}, want) >= 0
	})
	c := d.First + uint32(n)
	if n == int(d.Count) || x.Nodes[c].Leaf != leaf || x.NodeName(c) != name {
		return 0, false
	}
	return c, true
}

// Tensor finds a tensor by its name.
func (x *Index) Tensor(name string) (uint32, bool) {
	dir, ok := uint32(0), true
	stem := splitName(name, func(part string) {
		if ok {
			dir, ok = x.Child(dir, escapePart(part), false)
		}
	})
	for n := 1; ok; n++ {
		leaf := escapePart(stem)
		if n > 1 {
			leaf = Numbered(leaf, n)
		}
		c, found := x.Child(dir, leaf, true)
		if !found {
			return 0, false
		}
		if t := x.Nodes[c].First; x.Name(t) == name {
			return t, true
		}
	}
	return 0, false
}

// Below calls yield for each tensor below a directory (or the one of a leaf), in the order of the
// tree, until it returns false.
func (x *Index) Below(node uint32, yield func(tensor uint32) bool) bool {
	n := &x.Nodes[node]
	if n.Leaf {
		return yield(n.First)
	}
	for c := n.First; c < n.First+n.Count; c++ {
		if !x.Below(c, yield) {
			return false
		}
	}
	return true
}

// MarkViews sets every tensor's flags, and those of the directories above it. rows is the flag of
// tensors whose slices of dimension 0 are numbered.
func (x *Index) MarkViews(rows Flags, flags func(tensor uint32) Flags) {
	var next int64
	for i := range x.Records {
		f := flags(uint32(i))
		if f&rows != 0 {
			x.own(&x.Records[i]).RowStart = next
			next += int64(x.Shape(uint32(i))[0])
		}
		x.Nodes[x.Records[i].Node].Flags = f
	}
	for i := len(x.Nodes) - 1; i > 0; i-- {
		x.Nodes[x.Nodes[i].Parent].Flags |= x.Nodes[i].Flags
	}
}

// own is a record's aside for writing.
func (x *Index) own(r *Record) *aside {
	if r.aside == 0 {
		x.asides = append(x.asides, aside{})
		r.aside = uint32(len(x.asides))
	}
	return &x.asides[r.aside-1]
}

// A DuplicateError: two shards hold a tensor of one name.
type DuplicateError struct {
	Name  string
	Files [2]uint32
}

func (e *DuplicateError) Error() string { return fmt.Sprintf("tensor %q is there twice", e.Name) }
