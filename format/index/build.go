package index

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"weightfs/format/tensor"
)

// A Source is one parsed file: Tensors whose own File is empty lie in the shard of that number.
type Source struct {
	Header *tensor.Header
	Shard  uint32
	Files  map[string]uint32 // shard numbers of the other files that its tensors name
}

// Build makes the index of a checkpoint's parsed files, in their order. Two tensors of one name are a
// DuplicateError.
func Build(sources []Source) (*Index, error) {
	b := newBuilder(sources)
	for _, s := range sources {
		for i := range s.Header.Tensors {
			if err := b.add(&s.Header.Tensors[i], s); err != nil {
				return nil, err
			}
		}
	}
	if err := b.tree(); err != nil {
		return nil, err
	}
	b.x.text = b.text.String()
	return &b.x, nil
}

// A builder gathers records, and directories by their parent and name.
type builder struct {
	x    Index
	text strings.Builder

	shapes map[shapeKey]uint32

	dirs  map[dirKey]int32
	list  []buildDir
	leafs []buildLeaf
	path  []int32 // directories of the tensor before: most tensors share them with the next
	parts []string
}

type dirKey struct {
	parent int32
	name   string
}

type buildDir struct {
	parent   int32
	name     string // escaped
	part     string // as in the tensor's name
	children int
}

type buildLeaf struct {
	dir  int32
	stem string
}

func newBuilder(sources []Source) *builder {
	n, text := 0, 0
	for _, s := range sources {
		n += len(s.Header.Tensors)
		for i := range s.Header.Tensors {
			text += len(s.Header.Tensors[i].Name)
		}
	}
	b := &builder{shapes: map[shapeKey]uint32{}, dirs: map[dirKey]int32{}, list: []buildDir{{parent: -1}}}
	b.x.Records = make([]Record, 0, n)
	b.leafs = make([]buildLeaf, 0, n)
	b.text.Grow(text + text/8)
	return b
}

func (b *builder) add(t *tensor.Info, s Source) error {
	shard := s.Shard
	if t.File != "" {
		var ok bool
		if shard, ok = s.Files[t.File]; !ok {
			return fmt.Errorf("tensor %q lies in %q, which is not open", t.Name, t.File)
		}
	}
	r := Record{
		Off: t.Extent.Off, Bytes: t.Bytes, File: shard, DType: uint8(t.DType),
		Rank: uint16(len(t.Shape)), Dims: b.shape(t.Shape), Name: b.put(t.Name),
	}
	if t.Layout != nil {
		a := b.x.own(&r)
		b.x.layouts = append(b.x.layouts, b.layout(t.Layout))
		a.Len, a.Layout = t.Extent.Len, uint32(len(b.x.layouts))
	}
	if len(t.Extra) > 0 {
		members := tensor.AppendJSON(nil, t.Extra)
		b.x.own(&r).Extra = b.put(string(members[1 : len(members)-1]))
	}
	if len(t.Shape) > math.MaxUint16 {
		return fmt.Errorf("tensor %q has %d dimensions: %w", t.Name, len(t.Shape), tensor.ErrTooLarge)
	}
	if b.text.Len() > math.MaxUint32/2 || len(b.x.dims) > math.MaxUint32/2 {
		return fmt.Errorf("the names of %d tensors exceed 2 GiB: %w", len(b.x.Records), tensor.ErrTooLarge)
	}
	b.x.Records = append(b.x.Records, r)
	b.place(t.Name)
	return nil
}

// shape keeps a shape once: the tensors of a model have few different ones.
func (b *builder) shape(shape []uint64) uint32 {
	if n := len(b.x.Records); n > 0 {
		if last := b.x.Shape(uint32(n - 1)); slices.Equal(last, shape) {
			return b.x.Records[n-1].Dims
		}
	}
	k := shapeKey{n: len(shape)}
	if copy(k.dims[:], shape); len(shape) <= len(k.dims) {
		if at, ok := b.shapes[k]; ok {
			return at
		}
	}
	at := uint32(len(b.x.dims))
	b.x.dims = append(b.x.dims, shape...)
	if len(shape) <= len(k.dims) {
		b.shapes[k] = at
	}
	return at
}

// shapeKey is a shape of up to four dimensions; others are rare and kept as often as they come.
type shapeKey struct {
	n    int
	dims [4]uint64
}

func (b *builder) put(s string) Text {
	off := b.text.Len()
	b.text.WriteString(s)
	return Text{uint32(off), uint32(len(s))}
}

func (b *builder) layout(l *tensor.Layout) layout {
	out := layout{Pack: uint8(l.Pack), Unpacked: l.Unpacked, Skip: l.Skip, CRC32: l.CRC32}
	if l.Strides != nil {
		out.Strides = uint32(len(b.x.dims)) + 1
		for _, s := range l.Strides {
			b.x.dims = append(b.x.dims, uint64(s))
		}
	}
	if l.Swap {
		out.Bits |= bitSwap
	}
	if l.Neg {
		out.Bits |= bitNeg
	}
	if l.Conj {
		out.Bits |= bitConj
	}
	return out
}

// place finds or makes the directories of a name, and gives the leaf to the last of them.
func (b *builder) place(name string) {
	b.parts = b.parts[:0]
	stem := splitName(name, func(part string) { b.parts = append(b.parts, part) })
	dir, same := int32(0), true
	for i, part := range b.parts {
		if same && i < len(b.path) && b.list[b.path[i]].part == part {
			dir = b.path[i]
			continue
		}
		if same {
			b.path, same = b.path[:i], false
		}
		dir = b.dir(dir, part)
		b.path = append(b.path, dir)
	}
	if same {
		b.path = b.path[:len(b.parts)]
	}
	b.leafs = append(b.leafs, buildLeaf{dir, escapePart(stem)})
	b.list[dir].children++
}

func (b *builder) dir(parent int32, part string) int32 {
	k := dirKey{parent, escapePart(part)}
	if d, ok := b.dirs[k]; ok {
		return d
	}
	d := int32(len(b.list))
	b.list = append(b.list, buildDir{parent: parent, name: k.name, part: part})
	b.list[parent].children++
	b.dirs[k] = d
	return d
}

// A child is a directory or a leaf of one directory while it is sorted.
type child struct {
	key
	id int32 // of the directory or the tensor
}

// tree writes the nodes breadth first: a directory's children side by side, sorted.
func (b *builder) tree() error {
	children, start := b.children()
	b.x.Nodes = make([]Node, 1, len(b.list)+len(b.leafs))
	queue := make([]int32, 1, len(b.list)) // directories by build number, in the order of their nodes
	nodes := make([]uint32, 1, len(b.list))
	for q := 0; q < len(queue); q++ {
		d, at := queue[q], nodes[q]
		list := children[start[d]:start[d+1]]
		if err := b.sort(list); err != nil {
			return err
		}
		b.x.Nodes[at].First, b.x.Nodes[at].Count = uint32(len(b.x.Nodes)), uint32(len(list))
		for _, c := range list {
			n := Node{Parent: at, Leaf: c.leaf}
			if c.leaf {
				n.First = uint32(c.id)
				n.Name = b.leafText(c)
				b.x.Records[c.id].Node = uint32(len(b.x.Nodes))
			} else {
				n.Name = b.put(c.name)
				queue, nodes = append(queue, c.id), append(nodes, uint32(len(b.x.Nodes)))
			}
			b.x.Nodes = append(b.x.Nodes, n)
		}
	}
	return nil
}

// children groups directories and leaves by their directory: those of d are children[start[d]:start[d+1]].
func (b *builder) children() (children []child, start []int) {
	start = make([]int, len(b.list)+1)
	for d := range b.list {
		start[d+1] = start[d] + b.list[d].children
	}
	next := slices.Clone(start)
	children = make([]child, start[len(b.list)])
	for d := 1; d < len(b.list); d++ {
		p := b.list[d].parent
		children[next[p]] = child{key{b.list[d].name, false}, int32(d)}
		next[p]++
	}
	for i, l := range b.leafs {
		children[next[l.dir]] = child{key{l.stem, true}, int32(i)}
		next[l.dir]++
	}
	return children, start
}

// leafText is the stem of a leaf: the end of its tensor's name where nothing had to be escaped.
func (b *builder) leafText(c child) Text {
	name := b.x.Records[c.id].Name
	if n := uint32(len(c.name)); n <= name.Len {
		tail := Text{name.Off + name.Len - n, n}
		if b.text.String()[tail.Off:tail.Off+n] == c.name {
			return tail
		}
	}
	return b.put(c.name)
}

// sort puts a directory into natural order and gives `~2` and so on to stems that are taken.
func (b *builder) sort(list []child) error {
	order := func(x, y child) int {
		return cmp.Or(compare(x.key, y.key), cmp.Compare(x.id, y.id))
	}
	if !slices.IsSortedFunc(list, order) {
		slices.SortFunc(list, order)
	}
	for i := 1; i < len(list); i++ {
		if list[i].leaf && list[i].key == list[i-1].key {
			if err := b.renumber(list); err != nil {
				return err
			}
			slices.SortFunc(list, order)
			return nil
		}
	}
	return nil
}

// renumber tells the leaves of one stem apart, in the order of the file.
func (b *builder) renumber(list []child) error {
	byFile := make([]*child, 0, len(list))
	for i := range list {
		if list[i].leaf {
			byFile = append(byFile, &list[i])
		}
	}
	slices.SortFunc(byFile, func(x, y *child) int { return cmp.Compare(x.id, y.id) })
	taken := make(map[string]bool, len(byFile))
	names := make(map[string]int32, len(byFile))
	next := make(map[string]int)
	for _, c := range byFile {
		name := b.recordName(c.id)
		if other, twice := names[name]; twice {
			return &DuplicateError{Name: name, Files: [2]uint32{b.x.Records[other].File, b.x.Records[c.id].File}}
		}
		names[name] = c.id
		stem := c.name
		for n := max(next[stem], 2); taken[c.name]; n++ {
			c.name = Numbered(stem, n)
			next[stem] = n
		}
		taken[c.name] = true
	}
	return nil
}

func (b *builder) recordName(tensor int32) string {
	t := b.x.Records[tensor].Name
	return b.text.String()[t.Off : t.Off+t.Len]
}
