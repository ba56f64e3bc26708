package format

import (
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"unicode/utf8"

	"weightfs/digest"
	"weightfs/format/tensor"
)

// stats/: the statistics and the SHA-256 of each tensor, computed when they are read. The file has one
// size whatever comes out, so that nothing is computed for a stat.

// statsLen is the size of a statistics file: spaces fill what its object leaves.
const statsLen = 1024

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

// Fault adds to an error in reading a tensor which one it was, and the file unless it names that; nil for
// no error.
func (c *Checkpoint) Fault(i int, err error) error {
	if err == nil {
		return nil
	}
	return inFile(fmt.Errorf("tensor %q: %w", c.TensorName(i), err), c.Shards[c.index.Records[i].File].Path)
}

// Watched tells Read of every n bytes that are read.
type Watched struct {
	io.ReaderAt
	Read func(n int)
}

// ReadAt implements io.ReaderAt.
func (w Watched) ReadAt(p []byte, off int64) (int, error) {
	n, err := w.ReaderAt.ReadAt(p, off)
	w.Read(n)
	return n, err
}

// RedigestFile reads a shard whole and gives its hash, as Redigest does.
func (c *Checkpoint) RedigestFile(shard int, read func(n int)) (digest.Result, error) {
	s := c.Shards[shard]
	n := s.Size()
	whole := tensor.Info{DType: tensor.U8, Shape: []uint64{uint64(n)}, Bytes: n, Extent: tensor.Extent{Len: n}}
	r, err := c.digests[shard].Renew(Watched{s, read}, &whole, digest.Hash)
	return r, inFile(err, s.Path)
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

func statsSize(*Checkpoint, uint32) int64 { return statsLen }

func openStats(c *Checkpoint, t uint32) (Content, error) {
	return newSegments(Produced(&statsText{c: c, tensor: t}, statsLen)), nil
}

// statsText is the text of a statistics file, made at the first read.
type statsText struct {
	c      *Checkpoint
	tensor uint32
	mu     sync.Mutex
	text   []byte
}

// ReadAt implements io.ReaderAt. A failure is tried again by the next read.
func (s *statsText) ReadAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == nil {
		sum, err := s.c.Digest(int(s.tensor), digest.Hash|digest.Stats)
		if err != nil {
			return 0, err
		}
		s.text = renderStats(s.c.index.Info(s.tensor), &sum)
	}
	if off >= statsLen {
		return 0, io.EOF
	}
	n := copy(p, s.text[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// renderStats renders the object, a member a line, so that grep shows what it found. What has no value
// is null: moments of no finite value, counts of a type that is not decoded, and a name or a shape
// that would not fit.
func renderStats(info tensor.Info, r *digest.Result) []byte {
	name := any(info.Name)
	if !utf8.ValidString(info.Name) {
		name = nil
	}
	var text []byte
	for _, fits := range [][2]any{{name, info.Shape}, {name, nil}, {nil, info.Shape}, {nil, nil}} {
		if text = statsObject(info, fits[0], fits[1], r); len(text) < statsLen {
			break
		}
	}
	for len(text) < statsLen-1 {
		text = append(text, ' ')
	}
	return append(text, '\n')
}

func statsObject(info tensor.Info, name, shape any, r *digest.Result) []byte {
	elements, _ := tensor.Elements(info.Shape) // the parser has checked it
	members := tensor.Object{
		{Key: "name", Value: name}, {Key: "dtype", Value: info.DType.String()}, {Key: "shape", Value: shape},
		{Key: "elements", Value: elements},
		{Key: "nan", Value: r.NaN}, {Key: "pos_inf", Value: r.PosInf}, {Key: "neg_inf", Value: r.NegInf},
		{Key: "zeros", Value: r.Zeros},
		{Key: "min", Value: finite(r.Min)}, {Key: "max", Value: finite(r.Max)},
		{Key: "mean", Value: finite(r.Mean)}, {Key: "std", Value: finite(r.Std)},
		{Key: "sha256", Value: hex.EncodeToString(r.SHA256[:])},
	}
	for i := range members {
		switch members[i].Key {
		case "nan", "pos_inf", "neg_inf", "zeros":
			if r.Has&digest.Stats == 0 {
				members[i].Value = nil
			}
		case "min", "max", "mean", "std":
			if r.Finite == 0 {
				members[i].Value = nil
			}
		}
	}
	b := []byte("{")
	for i, kv := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, "\n  \""...), kv.Key...), `": `...)
		b = tensor.AppendJSON(b, kv.Value)
	}
	return append(b, "\n}"...)
}

// finite is a number, or null where a moment is beyond float64.
func finite(x float64) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return x
}
