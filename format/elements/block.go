package elements

import (
	"slices"
	"sync"
)

// blockSize is how much of a scattered tensor is gathered at once: of a transposed matrix, whose
// rows lie across the whole file, many rows take as many system calls as one.
const blockSize = 4 << 20

// A block is a piece of a tensor's output, gathered by the first who needs it.
type block struct {
	g    *gather
	off  int64
	fill sync.Once
	p    []byte
	err  error
}

// recent holds the last blocks of all tensors, the last used first, so that memory is bounded
// however many readers there are.
var recent struct {
	sync.Mutex
	blocks [4]*block
}

// scattered tells whether blocks pay: 32 times as much output for less than four times the reads.
func (g *gather) scattered(size int64) bool {
	return size > blockSize/32 && g.preads(min(size, blockSize)) < 4*g.preads(blockSize/32) && g.preads(blockSize/32) > 8
}

// preads is about how many reads of the storage n bytes of output take.
func (g *gather) preads(n int64) int64 {
	axes := slices.Clone(g.axes)
	for len(axes) > 1 && axes[0].dst > n {
		axes = axes[1:]
	}
	if len(axes) == 0 {
		return 1
	}
	axes[0].n = min(axes[0].n, n/axes[0].dst)
	sortAxes(axes)
	count := int64(1)
	for i, a := range axes {
		step := a.step(g.extent(axes[i+1:]))
		count *= (a.n + step - 1) / step
		if step > 1 {
			break
		}
	}
	return count
}

// blocks fills p from blocks.
func (g *gather) blocks(p []byte, off int64) error {
	for len(p) > 0 {
		b, err := g.blockAt(off - off%blockSize)
		if err != nil {
			return err
		}
		n := copy(p, b[off%blockSize:])
		p, off = p[n:], off+int64(n)
	}
	return nil
}

func (g *gather) blockAt(off int64) ([]byte, error) {
	b := recall(g, off)
	b.fill.Do(func() {
		p := make([]byte, min(blockSize, g.size-off))
		if b.err = g.span(p, g.axes, off, 0); b.err == nil {
			b.p = p
		}
	})
	if b.err != nil {
		forget(b)
	}
	return b.p, b.err
}

// recall finds a recent block, or puts a new one in the place of the least recent.
func recall(g *gather, off int64) *block {
	recent.Lock()
	defer recent.Unlock()
	at := len(recent.blocks) - 1
	for i, b := range recent.blocks {
		if b != nil && b.g == g && b.off == off {
			at = i
			break
		}
	}
	b := recent.blocks[at]
	if b == nil || b.g != g || b.off != off {
		b = &block{g: g, off: off}
	}
	copy(recent.blocks[1:at+1], recent.blocks[:at])
	recent.blocks[0] = b
	return b
}

func forget(b *block) {
	recent.Lock()
	defer recent.Unlock()
	if i := slices.Index(recent.blocks[:], b); i >= 0 {
		recent.blocks[i] = nil
	}
}
