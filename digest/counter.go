package digest

import (
	"weightfs/format/decode"
	"weightfs/format/tensor"
)

// A counter counts a tensor's values, which it is given in order and in whole blocks.
type counter interface {
	add(p []byte)
	total() tally
}

func newCounter(t *tensor.Info) counter {
	left, _ := tensor.Elements(t.Shape) // the parser has checked it
	elems, size := t.DType.Block()
	switch {
	case size == 1:
		return &byteCounter{dtype: t.DType, elems: elems, left: left}
	case decode.Supported(t.DType):
		return &floatCounter{dtype: t.DType, elems: elems, size: size, out: make([]float32, tallyLen)}
	}
	return &wideCounter{dtype: t.DType, elems: elems, size: size, left: left, out: make([]float64, tallyLen)}
}

// floatCounter decodes to float32.
type floatCounter struct {
	dtype       tensor.DType
	elems, size int64 // of a block
	out         []float32
	sum         tally
}

func (c *floatCounter) add(p []byte) {
	step := tallyLen / c.elems * c.size
	for len(p) > 0 {
		n := min(int64(len(p)), step)
		v := c.out[:n/c.size*c.elems]
		decode.Floats(c.dtype, v, p[:n])
		c.sum.addFloats32(v)
		p = p[n:]
	}
}

func (c *floatCounter) total() tally { return c.sum }

// wideCounter takes the types that are wider than float32, integers, and what is left.
type wideCounter struct {
	dtype       tensor.DType
	elems, size int64
	left        uint64 // elements to come; the last bytes of a packed tensor may be filled up
	out         []float64
	sum         tally
}

func (c *wideCounter) add(p []byte) {
	parts := decode.Parts(c.dtype)
	step := int64(tallyLen/parts) / c.elems * c.size
	for len(p) > 0 {
		n := min(int64(len(p)), step)
		elems := min(uint64((n+c.size-1)/c.size*c.elems), c.left)
		v := c.out[:elems*uint64(parts)]
		decode.Values(c.dtype, v, p[:n])
		c.sum.addFloats64(v)
		c.left -= elems
		p = p[n:]
	}
}

func (c *wideCounter) total() tally { return c.sum }

// byteCounter takes the types of which a byte holds one element or more: how often each byte occurs
// tells all, without rounding.
type byteCounter struct {
	dtype  tensor.DType
	elems  int64
	left   uint64
	counts [4][256]uint64 // four, since a processor waits before it counts one byte again
	sum    tally
}

func (c *byteCounter) add(p []byte) {
	whole := int(min(uint64(len(p)), c.left/uint64(c.elems)))
	c.left -= uint64(whole) * uint64(c.elems)
	q := p[:whole]
	for ; len(q) >= 4; q = q[4:] {
		c.counts[0][q[0]]++
		c.counts[1][q[1]]++
		c.counts[2][q[2]]++
		c.counts[3][q[3]]++
	}
	for _, b := range q {
		c.counts[0][b]++
	}
	if whole < len(p) && c.left > 0 { // a last byte that is filled up
		var v [4]float64
		decode.Values(c.dtype, v[:c.left], p[whole:whole+1])
		c.sum.addFloats64(v[:c.left])
		c.left = 0
	}
}

func (c *byteCounter) total() tally {
	values := make([]float64, 0, 1024)
	counts := make([]uint64, 0, 1024)
	for b := range 256 {
		n := c.counts[0][b] + c.counts[1][b] + c.counts[2][b] + c.counts[3][b]
		if n == 0 {
			continue
		}
		var v [4]float64
		decode.Values(c.dtype, v[:c.elems], []byte{byte(b)})
		for _, x := range v[:c.elems] {
			values, counts = append(values, x), append(counts, n)
		}
	}
	sum := tallyCounts(values, counts)
	sum.merge(&c.sum)
	return sum
}
