package format

import (
	"errors"
	"iter"
	"sync"
	"time"

	"weightfs/digest"
	"weightfs/format/decode"
	"weightfs/format/elements"
	"weightfs/format/index"
	"weightfs/format/set"
	"weightfs/format/tensor"
)

// A Checkpoint is what the user named, opened: its shards, every tensor in them, and the tree.
type Checkpoint struct {
	Source   string // as resolved: a path
	Name     string // what a person calls it
	Format   string // of its shards; `mixed` when they differ
	Shards   []*Shard
	Warnings []string // what was left out or tolerated, each a sentence

	Took      time.Duration // of opening: detect, parse, tree
	FromIndex bool          // it was not parsed: an index of an earlier time was there
	Missed    string        // why none was used; empty with FromIndex

	opt          Options
	started      time.Time // of opening
	found        set.Set   // its files, but for the weight_map
	faults       []string  // the warnings that are none of found
	stem         string    // of assembled/STEM.safetensors
	listed       bool      // found is newer than the index
	side         []sideFile
	own          []ownFile // for files/
	dataStart    []int64   // of each shard: what data_offsets are relative to, 0 for none
	index        *index.Index
	unpacker     *elements.Unpacker
	spanning     Stat   // what shows of nodes that span shards
	stats        []Stat // of nodes of one shard, by its number
	meta         func() tensor.Object
	metadata     func() []byte
	tensors      func() *rendering // tensors.json
	byName       func() *flatNames
	sums         func() *sums
	digests      []*digest.Store      // of the shards
	scales       func() bool          // a tensor may be the scale of another
	quantization func() decode.Config // what config.json says
	total        func() totals
}

type totals struct{ bytes, elements uint64 }

// Len is the number of tensors.
func (c *Checkpoint) Len() int { return len(c.index.Records) }

// Tensor is the i-th tensor in the order of the files.
func (c *Checkpoint) Tensor(i int) Tensor {
	r := &c.index.Records[i]
	return Tensor{Info: c.index.Info(uint32(i)), Path: c.index.Path(r.Node), Shard: c.Shards[r.File]}
}

// TensorName is the i-th tensor's name, at less cost than Tensor.
func (c *Checkpoint) TensorName(i int) string { return c.index.Name(uint32(i)) }

// ByName finds a tensor by its name as stored.
func (c *Checkpoint) ByName(name string) (int, bool) {
	i, ok := c.index.Tensor(name)
	return int(i), ok
}

// InOrder gives every tensor once, in the order of the tree.
func (c *Checkpoint) InOrder() iter.Seq[int] {
	return func(yield func(int) bool) {
		c.index.Below(0, func(t uint32) bool { return yield(int(t)) })
	}
}

// Elements reads a tensor's elements as raw/ shows them: row-major, little-endian, by pread.
func (c *Checkpoint) Elements(i int) (Content, error) {
	seg, err := c.elements(uint32(i))
	if err != nil {
		return nil, err
	}
	return newSegments(seg), nil
}

// elements is the segment of a tensor's elements: the range itself, or a producer.
func (c *Checkpoint) elements(i uint32) (Segment, error) {
	r := &c.index.Records[i]
	shard := c.Shards[r.File]
	if c.index.Plain(i) {
		return Range(shard, r.Off, r.Bytes), nil
	}
	info := c.index.Info(i)
	reader, err := elements.Reader(shard, &info, c.unpacker)
	if err != nil {
		return Segment{}, c.Fault(int(i), err)
	}
	return Produced(faulting{reader, c, i}, r.Bytes), nil
}

// Meta is the containers' own key/value metadata, merged: of one key the value of the first shard
// stands.
func (c *Checkpoint) Meta() tensor.Object { return c.meta() }

// TotalBytes is the size of all tensors as raw/ shows them.
func (c *Checkpoint) TotalBytes() uint64 { return c.total().bytes }

// TotalElements is the number of elements of all tensors.
func (c *Checkpoint) TotalElements() uint64 { return c.total().elements }

func (c *Checkpoint) sum() (t totals) {
	for i := range c.index.Records {
		n, _ := tensor.Elements(c.index.Shape(uint32(i))) // the parser has checked it
		t.elements += n
		t.bytes += uint64(c.index.Records[i].Bytes)
	}
	return t
}

// Fresh says whether the checkpoint's files are those that were parsed: ErrStale when they are not.
func (c *Checkpoint) Fresh() error { return c.fresh(c.Shards...) }

// fresh tells whether the files of a range of shards are those that were parsed.
func (c *Checkpoint) fresh(shards ...*Shard) error {
	for _, s := range shards {
		if err := s.Fresh(); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the shards; no node or content may be in use any more.
func (c *Checkpoint) Close() error {
	var errs []error
	c.saveDigests()
	for _, s := range c.Shards {
		errs = append(errs, s.Close())
	}
	for i := range c.side {
		errs = append(errs, c.side[i].close())
	}
	if c.unpacker != nil {
		errs = append(errs, c.unpacker.Close())
	}
	return errors.Join(errs...)
}

// prepare makes what the tree needs of the shards and tensors.
func (c *Checkpoint) prepare() {
	c.spanning = Stat{Mode: 0o444}
	for i, s := range c.Shards {
		st := shardStat(s)
		c.stats = append(c.stats, st)
		if i == 0 {
			c.spanning.UID, c.spanning.GID = st.UID, st.GID
		}
		c.spanning.Mode &= st.Mode
		if st.ModTime.After(c.spanning.ModTime) {
			c.spanning.ModTime = st.ModTime
		}
	}
	if c.spanning.ModTime.IsZero() {
		c.spanning.ModTime = time.Unix(0, 0)
	}
	c.scales = sync.OnceValue(c.anyScales)
	c.quantization = sync.OnceValue(c.readQuantization)
	c.total = sync.OnceValue(c.sum)
	c.meta = sync.OnceValue(c.meta)
	c.metadata = sync.OnceValue(c.renderMetadata)
	c.tensors = sync.OnceValue(func() *rendering {
		return c.tensorsJSON(c.Len(), func(i int) uint32 { return uint32(i) })
	})
	c.byName = sync.OnceValue(c.flatNames)
	c.sums = sync.OnceValue(c.newSums)
	c.digests = c.newDigests()
}
