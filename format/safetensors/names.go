package safetensors

import (
	"hash/maphash"
	"slices"

	"weightfs/format/tensor"
)

// placeBits hold a place in the header, which the limit keeps below 2^27.
const placeBits = 27

// A nameList finds duplicate names by sorting: each is a hash over the place where it stands. (A
// map of 200,000 names misses the cache at every one, and takes longer than all the rest.) The
// seed is random, so no header can be made to collide.
type nameList struct {
	seed  maphash.Seed
	names []uint64
}

func (l *nameList) add(name string, at int) {
	l.names = append(l.names, maphash.String(l.seed, name)<<placeBits|uint64(at))
}

// unique refuses two tensors of one name, and tells the first such pair. The reference keeps the last
// without a word where the ranges agree, and speaks of an invalid offset where they do not.
func (p *parser) unique() bool {
	slices.Sort(p.names.names)
	first, second := 0, len(p.text)
	for i, a := range p.names.names {
		for _, b := range p.names.names[i+1:] {
			if a>>placeBits != b>>placeBits {
				break
			}
			if p.nameAt(place(a)) == p.nameAt(place(b)) {
				if place(b) < second {
					first, second = place(a), place(b)
				}
				break
			}
		}
	}
	if second == len(p.text) {
		return true
	}
	p.tensor = p.nameAt(second)
	return p.fail(second, tensor.ErrMalformed, "duplicate tensor name: one record is at offset %d, another at %d",
		lengthSize+first, lengthSize+second)
}

func place(name uint64) int { return int(name & (1<<placeBits - 1)) }

// nameAt reads again the name that stands at a place of the header.
func (p *parser) nameAt(at int) string {
	s := scanner{text: p.text, pos: at}
	name, _ := s.str()
	return name
}
