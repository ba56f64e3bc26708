// Package compare tells in what two checkpoints differ, tensor by tensor, across formats and types, and
// which tensors of one are the same. It prints nothing, and gives tensors no other names to make pairs:
// who opens the checkpoints does.
package compare

import (
	"cmp"
	"os"
	"slices"

	"weightfs/format"
	"weightfs/format/decode"
	"weightfs/format/tensor"
)

// A Kind says how a tensor of one checkpoint stands to the other checkpoint.
type Kind uint8

// The kinds. Renamed is the same bytes, type and shape under another name.
const (
	Removed Kind = iota + 1
	Added
	Renamed
	Changed
)

// String is the kind as `diff --json` has it.
func (k Kind) String() string { return [...]string{"", "removed", "added", "renamed", "changed"}[k] }

// A Side is a tensor in one of the checkpoints.
type Side struct {
	Name  string
	DType tensor.DType
	Shape []uint64
	Bytes int64
	parts int // numbers of an element; 0 where it cannot be read as numbers
}

// A Difference is a tensor that is not the same in both checkpoints.
type Difference struct {
	Kind Kind
	A, B *Side // nil where there is none

	// Of what is Changed:
	Permuted bool    // the rows are those of A in another order; Values are of rows that belong together
	Values   *Values // nil where they cannot be compared: another shape, a type that is not decoded
}

// DType tells whether the types differ.
func (d *Difference) DType() bool { return d.Kind == Changed && d.A.DType != d.B.DType }

// Shape tells whether the shapes differ.
func (d *Difference) Shape() bool { return d.Kind == Changed && !slices.Equal(d.A.Shape, d.B.Shape) }

// A Result is all that is not the same, in the order of A's tree and then of B's.
type Result struct {
	Same        int // tensors that are
	Differences []Difference
}

// A Comparison is two checkpoints whose tensors have been paired by name.
type Comparison struct {
	a, b     *format.Checkpoint
	pairs    [][2]int // with -1 for no partner
	progress func(n int)
}

// New pairs the tensors of two checkpoints by name. progress is told of every n bytes that were read.
func New(a, b *format.Checkpoint, progress func(n int)) *Comparison {
	c := &Comparison{a: a, b: b, progress: progress}
	paired := make([]bool, b.Len())
	for i := range a.InOrder() {
		j, ok := b.ByName(a.TensorName(i))
		if !ok {
			j = -1
		} else {
			paired[j] = true
		}
		c.pairs = append(c.pairs, [2]int{i, j})
	}
	for j := range b.InOrder() {
		if !paired[j] {
			c.pairs = append(c.pairs, [2]int{-1, j})
		}
	}
	return c
}

// Size is about how many bytes Run will read.
func (c *Comparison) Size() (n int64) {
	for _, p := range c.pairs {
		if p[0] >= 0 && p[1] >= 0 && !c.identical(p[0], p[1]) {
			n += c.a.Tensor(p[0]).Bytes + c.b.Tensor(p[1]).Bytes
		}
	}
	return n
}

// Run reads both checkpoints once, from front to back and on all cores. Only rows in another order, of
// quantised types, are read twice.
func (c *Comparison) Run() (*Result, error) {
	found := make([]*Difference, len(c.pairs))
	if err := c.comparePairs(found); err != nil {
		return nil, err
	}
	if err := c.findRenamed(found); err != nil {
		return nil, err
	}
	r := &Result{}
	for i, d := range found {
		switch {
		case d != nil:
			r.Differences = append(r.Differences, *d)
		case c.pairs[i][0] >= 0 && c.pairs[i][1] >= 0:
			r.Same++
		}
	}
	return r, nil
}

// comparePairs finds the differences of tensors that have one name, in the order in which A's files hold
// them.
func (c *Comparison) comparePairs(found []*Difference) error {
	var order []int
	for i, p := range c.pairs {
		if p[0] >= 0 && p[1] >= 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(c.pairs[i][0], c.pairs[j][0]) })
	return each(len(order), func(k int) (err error) {
		i := order[k]
		found[i], err = c.comparePair(c.pairs[i][0], c.pairs[i][1])
		return err
	})
}

func side(c *format.Checkpoint, i int) *Side {
	t := c.Tensor(i)
	s := &Side{Name: t.Name, DType: t.DType, Shape: t.Shape, Bytes: t.Bytes}
	if c.HasValues(i) {
		s.parts = decode.Parts(t.DType)
	}
	return s
}

// identical tells that two tensors are one range of one file.
func (c *Comparison) identical(i, j int) bool {
	s, t := c.a.Tensor(i), c.b.Tensor(j)
	return s.DType == t.DType && slices.Equal(s.Shape, t.Shape) && s.Layout == nil && t.Layout == nil &&
		s.Extent == t.Extent && os.SameFile(s.Shard.Stat(), t.Shard.Stat())
}

// comparePair gives nil when two tensors are the same.
func (c *Comparison) comparePair(i, j int) (*Difference, error) {
	if c.identical(i, j) {
		return nil, nil
	}
	d := &Difference{Kind: Changed, A: side(c.a, i), B: side(c.b, j)}
	if !elementwise(d.A, d.B) {
		return d, nil
	}
	s, err := c.newStream(i, j, d)
	if err != nil {
		return nil, err
	}
	if err := s.run(); err != nil {
		return nil, err
	}
	if !s.differs && !d.DType() && !d.Shape() {
		return nil, nil
	}
	if s.decodes {
		d.Values = s.values.summary(d.A.DType, d.B.DType)
	}
	return d, s.findPermutation(d)
}

// elementwise tells whether two tensors' elements can be compared one by one: the same number of them,
// of one type or of types that are both decoded to as many parts.
func elementwise(a, b *Side) bool {
	n, _ := tensor.Elements(a.Shape) // the parsers have checked it
	m, _ := tensor.Elements(b.Shape)
	if n != m {
		return false
	}
	return a.DType == b.DType && a.Bytes == b.Bytes || a.parts > 0 && a.parts == b.parts
}
