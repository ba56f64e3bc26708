package compare

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/zeebo/xxh3"
)

// A row that is not equal in its place, with what tells it from others on each side.
type row struct {
	index int64
	a, b  mark
}

// A mark is what a row is known by: its hash, and where the types differ also the sums of its sixteenths,
// which rounding changes little.
type mark struct {
	hash xxh3.Uint128
	sums [markSums]float32
}

const (
	markSums = 16
	// maxSearched bounds the rows of which each is compared with all others.
	maxSearched = 16 << 10
)

// mark is that of the numbers that were decoded last.
func (in *input) mark() (m mark) {
	if in.wide {
		m.hash = xxh3.Hash128(memory(in.f64))
		return m
	}
	m.hash = xxh3.Hash128(memory(in.f32))
	n := len(in.f32) / markSums
	for i := range m.sums {
		for _, x := range in.f32[n*i : n*(i+1)] {
			m.sums[i] += x
		}
	}
	return m
}

// findPermutation tells whether the rows that moved are the same rows in another order. llama.cpp
// interleaves those of a Llama's query and key matrices.
func (s *stream) findPermutation(d *Difference) error {
	if len(s.moved) < 2 {
		return nil
	}
	if s.sameRows() {
		d.Permuted, d.Values = true, new(values).summary(s.a.dtype, s.b.dtype)
		return nil
	}
	if s.a.wide || s.a.dtype == s.b.dtype || d.Values.Within || len(s.moved) > maxSearched {
		return nil
	}
	partner := s.nearest()
	if partner == nil {
		return nil
	}
	v, err := s.compareMoved(partner)
	if err != nil {
		return err
	}
	if moved := v.summary(s.a.dtype, s.b.dtype); moved.Within {
		d.Permuted, d.Values = true, moved
	}
	return nil
}

// sameRows tells whether the rows of both sides are the same but for their order.
func (s *stream) sameRows() bool {
	a, b := make([]xxh3.Uint128, len(s.moved)), make([]xxh3.Uint128, len(s.moved))
	for i, r := range s.moved {
		a[i], b[i] = r.a.hash, r.b.hash
	}
	order := func(x, y xxh3.Uint128) int { return cmp.Or(cmp.Compare(x.Hi, y.Hi), cmp.Compare(x.Lo, y.Lo)) }
	slices.SortFunc(a, order)
	slices.SortFunc(b, order)
	return slices.Equal(a, b)
}

// nearest finds for each moved row of A the one of B that it resembles most; nil when two resemble
// one, when the first rows resemble none, or when all resemble what is in their own place.
func (s *stream) nearest() []int {
	partner, taken, stay := make([]int, len(s.moved)), make([]bool, len(s.moved)), 0
	var near, far float32
	for i := range s.moved {
		a := &s.moved[i].a.sums
		best, least := -1, float32(0)
		for j := range s.moved {
			if d := distance(a, &s.moved[j].b.sums, least); best < 0 || d < least {
				best, least = j, d
			}
		}
		near += least
		far += 2 * distance(a, &[markSums]float32{}, 0) // what rows without relation are apart
		const first, alike = 16, 0.2
		if taken[best] || i == first && near > alike*far {
			return nil
		}
		partner[i], taken[best] = best, true
		if best == i {
			stay++
		}
	}
	if stay == len(partner) {
		return nil
	}
	return partner
}

// distance is the squared distance of two rows' sums, or something above most that is found sooner.
func distance(a, b *[markSums]float32, most float32) (sum float32) {
	for i, x := range a {
		d := x - b[i]
		if sum += d * d; sum > most && most > 0 {
			break
		}
	}
	return sum
}

// compareMoved reads the moved rows again, each beside its partner.
func (s *stream) compareMoved(partner []int) (v values, err error) {
	for i, j := range partner {
		if err := s.a.read(s.moved[i].index*s.piece, s.piece); err != nil {
			return v, err
		}
		if err := s.b.read(s.moved[j].index*s.piece, s.piece); err != nil {
			return v, err
		}
		if s.a.dtype == s.b.dtype && bytes.Equal(s.a.raw, s.b.raw) {
			continue
		}
		s.a.decode(s.a.raw, s.piece)
		s.b.decode(s.b.raw, s.piece)
		add(&v, s.a.f32, s.b.f32)
	}
	return v, nil
}
