package digest

import (
	"encoding/binary"
	"math"

	"github.com/zeebo/xxh3"
)

// A file of the cache is a head and records of one length, each with a checksum, so that results are
// appended as they come and a damaged one is left out. The version in the head changes with every
// change of what a Result means.
const (
	magic      = "weightfs digest 1"
	headLen    = 64
	recordLen  = 16 + 32 + 8 + 5*8 + 4*8 + 8
	recordsMax = 1 << 23 // of one file: what is larger is not ours
)

var le = binary.LittleEndian

// head identifies the state of the file that the records are about.
func (id identity) head() []byte {
	b := make([]byte, headLen)
	copy(b, magic)
	sum := id.sum()
	copy(b[24:], sum[:])
	seal(b)
	return b
}

// seal ends a record or head with the checksum of the rest.
func seal(b []byte) {
	end := len(b) - 8
	le.PutUint64(b[end:], xxh3.Hash(b[:end]))
}

func sealed(b []byte) bool {
	end := len(b) - 8
	return le.Uint64(b[end:]) == xxh3.Hash(b[:end])
}

func appendRecord(b []byte, k key, r *Result) []byte {
	start := len(b)
	b = append(b, k[:]...)
	b = append(b, r.SHA256[:]...)
	for _, n := range []uint64{uint64(r.Has), r.NaN, r.PosInf, r.NegInf, r.Zeros, r.Finite} {
		b = le.AppendUint64(b, n)
	}
	for _, x := range []float64{r.Min, r.Max, r.Mean, r.Std} {
		b = le.AppendUint64(b, math.Float64bits(x))
	}
	b = append(b, make([]byte, 8)...)
	seal(b[start:])
	return b
}

// parseRecord reads a record, unless it is damaged.
func parseRecord(b []byte) (k key, r Result, ok bool) {
	if !sealed(b) {
		return k, r, false
	}
	b = b[copy(k[:], b):]
	b = b[copy(r.SHA256[:], b):]
	r.Has = Parts(le.Uint64(b))
	for i, n := range []*uint64{&r.NaN, &r.PosInf, &r.NegInf, &r.Zeros, &r.Finite} {
		*n = le.Uint64(b[8+8*i:])
	}
	for i, x := range []*float64{&r.Min, &r.Max, &r.Mean, &r.Std} {
		*x = math.Float64frombits(le.Uint64(b[48+8*i:]))
	}
	return k, r, true
}
