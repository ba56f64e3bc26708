package safetensors

import (
	"cmp"
	"math"
	"slices"

	"weightfs/format/tensor"
)

// A span is a tensor's range of the byte buffer, and where its name stands in the text.
type span struct {
	begin, end uint64
	at         int
}

// cover checks the ranges together, of tensors of unknown type too: none may overlap another or pass
// the end of the file. A hole or a rest that no tensor covers is tolerable.
func (p *parser) cover() bool {
	order := func(a, b span) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end)) }
	if !slices.IsSortedFunc(p.spans, order) {
		slices.SortFunc(p.spans, order)
	}
	var last span // the one that ends furthest
	for _, s := range p.spans {
		if s.begin < last.end {
			return p.overlap(last, s)
		}
		last = s
	}
	if last.end > uint64(p.size-p.dataOff) {
		return p.truncated(last.end)
	}
	p.holes()
	p.rest(int64(last.end))
	return true
}

func (p *parser) overlap(first, s span) bool {
	p.tensor = p.nameAt(s.at)
	return p.fail(s.at, tensor.ErrMalformed, "data_offsets [%d, %d] overlap [%d, %d] of tensor %q",
		s.begin, s.end, first.begin, first.end, abbreviate(p.nameAt(first.at), 256))
}

// truncated tells the first tensor that is cut, and both sizes; end is where the last one ends.
func (p *parser) truncated(end uint64) bool {
	have := uint64(p.size - p.dataOff)
	i := slices.IndexFunc(p.spans, func(s span) bool { return s.end > have })
	s := p.spans[i]
	p.tensor = p.nameAt(s.at)
	if end > math.MaxInt64-uint64(p.dataOff) {
		return p.fail(s.at, tensor.ErrTooLarge, "data_offsets [%d, %d] end beyond 63 bits", s.begin, s.end)
	}
	want := uint64(p.dataOff) + end
	return p.fail(s.at, tensor.ErrTruncated, "truncated: data_offsets [%d, %d] end at byte %d, but the file has %d bytes of the %d that its header describes: %d are missing",
		s.begin, s.end, uint64(p.dataOff)+s.end, p.size, want, want-uint64(p.size))
}

// holes makes tolerable faults of the gaps between tensors; behind the first hundred, one of the sum.
func (p *parser) holes() {
	var end, more, bytes uint64
	for _, s := range p.spans {
		hole := s.begin - end
		if hole > 0 && len(p.out.Tolerable) < maxTold {
			p.tolerate(end, p.nameAt(s.at), "hole of %d bytes: data_offsets [%d, %d], but no tensor covers [%d, %d]", hole, s.begin, s.end, end, s.begin)
		} else if hole > 0 {
			more, bytes = more+1, bytes+hole
		}
		end = s.end
	}
	if more > 0 {
		p.tolerate(end, "", "%d more holes between tensors, of %d bytes together", more, bytes)
	}
}

// rest makes a tolerable fault of the bytes behind the last tensor.
func (p *parser) rest(end int64) {
	if n := p.size - p.dataOff - end; n > 0 {
		p.tolerate(uint64(end), "", "%d trailing bytes after the last tensor: the header describes a file of %d bytes, this one has %d", n, p.dataOff+end, p.size)
	}
}

// tolerate records a fault at a place of the byte buffer.
func (p *parser) tolerate(at uint64, name, format string, a ...any) {
	e := fault(p.dataOff+int64(at), tensor.ErrMalformed, format, a...)
	e.Tensor = abbreviate(name, 256)
	p.out.Tolerable = append(p.out.Tolerable, e)
}
