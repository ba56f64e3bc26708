//go:build linux

package fs

import (
	"slices"
	"sync"

	"weightfs/format"
)

// What the kernel keeps of a mounted file it keeps of the shard as well, where the bytes came from, so
// that a model larger than half the memory would push itself out. With DropBehind the shard's pages go
// when all of a block has been sent: read in order, in however many files and by however many readers,
// that is block after block. A block that is read again comes from the disk, and nothing else changes.

// dropBlock is larger than what the kernel drops at least, a folio, and enough not to be felt.
const dropBlock = 4 << 20

// mostSpans is how many readers may be at different places of a shard; what is read at random is not
// remembered for long.
const mostSpans = 1024

// A dropper knows what has been sent of every shard.
type dropper struct{ shards sync.Map }

// sent is told of a reply that the kernel has copied.
func (d *dropper) sent(r *reply) {
	for _, part := range r.ranges() {
		d.add(part.Shard, part.Off, part.Len)
	}
}

func (d *dropper) add(shard *format.Shard, off, n int64) {
	v, ok := d.shards.Load(shard)
	if !ok {
		v, _ = d.shards.LoadOrStore(shard, new(spanSet))
	}
	if whole := v.(*spanSet).add(span{off, off + n}, shard.Size()); whole.end > whole.begin {
		// A page that is missing is read with half the device's read-ahead in front of it, which brings
		// back the end of what was dropped before.
		begin := max(0, whole.begin-dropBlock)
		shard.Drop(begin, whole.end-begin)
	}
}

type span struct{ begin, end int64 }

// A spanSet is the sent ranges of a shard that make no whole block, in order and apart from each other.
type spanSet struct {
	mu    sync.Mutex
	spans []span
}

// add gives the blocks that are complete with s, and forgets them. The last one ends with the file.
func (set *spanSet) add(s span, size int64) (whole span) {
	set.mu.Lock()
	defer set.mu.Unlock()
	i, _ := slices.BinarySearchFunc(set.spans, s.begin, func(o span, begin int64) int {
		if o.end < begin {
			return -1
		}
		return 1
	})
	j := i
	for ; j < len(set.spans) && set.spans[j].begin <= s.end; j++ {
		s = span{min(s.begin, set.spans[j].begin), max(s.end, set.spans[j].end)}
	}
	whole = span{(s.begin + dropBlock - 1) / dropBlock * dropBlock, s.end / dropBlock * dropBlock}
	if s.end == size {
		whole.end = size
	}
	left := []span{s}
	if whole.end > whole.begin {
		left = []span{{s.begin, whole.begin}, {whole.end, s.end}}
	}
	left = slices.DeleteFunc(left, func(s span) bool { return s.begin == s.end })
	if set.spans = slices.Replace(set.spans, i, j, left...); len(set.spans) > mostSpans {
		set.spans = nil
	}
	return whole
}
