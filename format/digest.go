package format

import (
	"io"
	"strings"
	"time"

	"weightfs/digest"
	"weightfs/format/tensor"
)

// HasValues tells whether a tensor's elements can be read as numbers (package decode): its type is
// decoded, and it is no block of a big-endian file, whose inner fields are as stored.
func (c *Checkpoint) HasValues(i int) bool {
	d := tensor.DType(c.index.Records[i].DType)
	return digest.Counts(d) && (d.Kind() != tensor.Block || !strings.Contains(c.index.Extra(uint32(i)), bigEndianExtra))
}

// Digest gives the hash or the statistics of a tensor's elements as raw/ shows them, from the cache or
// by reading them.
func (c *Checkpoint) Digest(i int, want digest.Parts) (digest.Result, error) {
	return c.digest(i, want, func(n int) {}, (*digest.Store).Sum)
}

// Redigest is Digest that reads the elements whatever is known of them, and tells of every n bytes that
// it has read.
func (c *Checkpoint) Redigest(i int, want digest.Parts, read func(n int)) (digest.Result, error) {
	return c.digest(i, want, read, (*digest.Store).Renew)
}

type digester func(*digest.Store, io.ReaderAt, *tensor.Info, digest.Parts) (digest.Result, error)

func (c *Checkpoint) digest(i int, want digest.Parts, read func(n int), sum digester) (digest.Result, error) {
	file := c.index.Records[i].File
	info := c.index.Info(uint32(i))
	if !c.HasValues(i) {
		want &^= digest.Stats
	}
	content, err := c.Elements(i)
	if err != nil {
		return digest.Result{}, err
	}
	r, err := sum(c.digests[file], Watched{ContentReader{content}, read}, &info, want)
	return r, c.Fault(i, err)
}

// RedigestFile reads a shard whole and gives its hash, as Redigest does.
func (c *Checkpoint) RedigestFile(shard int, read func(n int)) (digest.Result, error) {
	s := c.Shards[shard]
	r, err := c.digests[shard].Renew(Watched{s, read}, wholeFile(s), digest.Hash)
	return r, inFile(err, s.Path)
}

// ChangedSince tells when a shard was last seen in an earlier state with another hash than it has now, as
// far as the cache knows.
func (c *Checkpoint) ChangedSince(shard int, now digest.Result) (time.Time, bool) {
	return c.digests[shard].ChangedSince(wholeFile(c.Shards[shard]), now.SHA256)
}

func wholeFile(s *Shard) *tensor.Info {
	n := s.Size()
	return &tensor.Info{DType: tensor.U8, Shape: []uint64{uint64(n)}, Bytes: n, Extent: tensor.Extent{Len: n}}
}

// newDigests makes a store for each shard; none is read before it is used.
func (c *Checkpoint) newDigests() (list []*digest.Store) {
	for _, s := range c.Shards {
		list = append(list, digest.NewStore(c.opt.DigestDir, s.Path, s.stat))
	}
	return list
}

// saveDigests writes to the cache what was computed lately.
func (c *Checkpoint) saveDigests() {
	for _, d := range c.digests {
		d.Save()
	}
}
