package compare

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/zeebo/xxh3"
	"golang.org/x/sync/errgroup"

	"weightfs/digest"
	"weightfs/format"
	"weightfs/format/tensor"
)

// Tensors with the same bytes are found by a sample of them, and only those that agree in it are read
// whole.

// A ref is a tensor of one of several checkpoints.
type ref struct {
	c *format.Checkpoint
	i int
}

// A sample is what tensors with the same bytes have in common.
type sample struct {
	dtype  tensor.DType
	bytes  int64
	shape  string
	middle xxh3.Uint128
}

const sampleLen = 4096

// sample reads a little of a tensor.
func (r ref) sample() (sample, error) {
	t := r.c.Tensor(r.i)
	content, err := r.c.Elements(r.i)
	if err != nil {
		return sample{}, err
	}
	b := make([]byte, 2*sampleLen)
	n, off := sampleLen, max(0, t.Bytes/2-sampleLen/2)
	src := format.ContentReader{Content: content}
	first, err := src.ReadAt(b[:n], 0)
	if err == nil || errors.Is(err, io.EOF) {
		n, err = src.ReadAt(b[first:first+sampleLen], off)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return sample{}, r.c.Fault(r.i, err)
	}
	return sample{t.DType, t.Bytes, fmt.Sprint(t.Shape), xxh3.Hash128(b[:first+n])}, nil
}

// A twin is tensors whose bytes, type and shape are the same, in the order in which they were given.
type twin []ref

// twins groups tensors that are the same. Of what agrees in the sample only those for which worth holds
// are read.
func twins(list []ref, worth func([]ref) bool, progress func(n int)) ([]twin, error) {
	samples := make([]sample, len(list))
	if err := each(len(list), func(i int) (err error) {
		samples[i], err = list[i].sample()
		return err
	}); err != nil {
		return nil, err
	}
	alike := map[sample][]ref{}
	for i, r := range list {
		alike[samples[i]] = append(alike[samples[i]], r)
	}
	var candidates []ref
	for i, r := range list {
		if group := alike[samples[i]]; worth(group) {
			candidates = append(candidates, r)
		}
	}
	return hashed(candidates, progress)
}

// hashed groups tensors by their bytes.
func hashed(list []ref, progress func(n int)) ([]twin, error) {
	type content struct {
		dtype tensor.DType
		shape string
		sum   [sha256.Size]byte
	}
	contents := make([]content, len(list))
	if err := each(len(list), func(i int) error {
		t := list[i].c.Tensor(list[i].i)
		r, err := list[i].c.Digest(list[i].i, digest.Hash)
		progress(int(t.Bytes))
		contents[i] = content{t.DType, fmt.Sprint(t.Shape), r.SHA256}
		return err
	}); err != nil {
		return nil, err
	}
	place := map[content]int{}
	var groups []twin
	for i, r := range list {
		at, ok := place[contents[i]]
		if !ok {
			at = len(groups)
			place[contents[i]] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], r)
	}
	return slices.DeleteFunc(groups, func(t twin) bool { return len(t) < 2 }), nil
}

// each calls f for 0 to n-1 on all cores, and gives its first error.
func each(n int, f func(i int) error) error {
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil // another has failed
			}
			return f(i)
		})
	}
	return group.Wait()
}

// findRenamed finds, of the tensors without a partner, those that are in both checkpoints under other
// names.
func (c *Comparison) findRenamed(found []*Difference) error {
	var list []ref
	place := map[ref]int{}
	for i, p := range c.pairs {
		r := ref{c.a, p[0]}
		switch {
		case p[0] >= 0 && p[1] >= 0:
			continue
		case p[0] >= 0:
			found[i] = &Difference{Kind: Removed, A: side(c.a, p[0])}
		default:
			r = ref{c.b, p[1]}
			found[i] = &Difference{Kind: Added, B: side(c.b, p[1])}
		}
		if r.c.Tensor(r.i).Bytes > 0 {
			list = append(list, r)
			place[r] = i
		}
	}
	both := func(group []ref) bool { return group[0].c != group[len(group)-1].c } // those of A come first
	same, err := twins(list, both, c.progress)
	if err != nil {
		return err
	}
	for _, t := range same {
		split, _ := slices.BinarySearchFunc(t, 0, func(r ref, _ int) int {
			if r.c == c.a {
				return -1
			}
			return 1
		})
		for k := range min(split, len(t)-split) {
			a, b := place[t[k]], place[t[split+k]]
			found[a] = &Difference{Kind: Renamed, A: found[a].A, B: found[b].B}
			found[b] = nil
		}
	}
	return nil
}

// A Duplicate is tensors of one checkpoint that have the same bytes, type and shape.
type Duplicate struct {
	Tensors []int
	Copies  int // how often the bytes are stored; once for tied tensors
	Bytes   int64
}

// Duplicates finds tied tensors, which share their bytes, and those that are stored more than once. What
// takes most is first.
func Duplicates(c *format.Checkpoint, progress func(n int)) ([]Duplicate, error) {
	var list []ref
	for i := range c.InOrder() {
		if c.Tensor(i).Bytes > 0 {
			list = append(list, ref{c, i})
		}
	}
	same, err := twins(list, func(group []ref) bool { return len(group) > 1 }, progress)
	if err != nil {
		return nil, err
	}
	var out []Duplicate
	for _, t := range same {
		d := Duplicate{Bytes: c.Tensor(t[0].i).Bytes}
		type place struct {
			shard  *format.Shard
			extent tensor.Extent
		}
		places := map[place]bool{}
		for _, r := range t {
			x := c.Tensor(r.i)
			d.Tensors = append(d.Tensors, r.i)
			places[place{x.Shard, x.Extent}] = true
		}
		d.Copies = len(places)
		out = append(out, d)
	}
	slices.SortStableFunc(out, func(x, y Duplicate) int { return cmp.Compare(y.Waste(), x.Waste()) })
	return out, nil
}

// Waste is what storing the bytes once would save.
func (d Duplicate) Waste() int64 { return d.Bytes * int64(d.Copies-1) }
