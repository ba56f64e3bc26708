// Package digest computes hashes and statistics of tensors in one pass over their bytes, in bounded
// memory, and keeps what it computed in the cache directory. It knows tensors of a file, not checkpoints.
package digest

import (
	"crypto/sha256"
	"io"
	"math"

	"weightfs/format/decode"
	"weightfs/format/tensor"
)

// Parts say what to compute, and what a Result holds.
type Parts uint8

// The parts of a Result.
const (
	Hash  Parts = 1 << iota // SHA256
	Stats                   // the rest; nothing for types that are not decoded
)

// A Result is what one pass over a tensor gives. The statistics are of the decoded values in float64:
// those of complex types are of the real and imaginary parts, and min, max, mean and std are of the
// finite values alone.
type Result struct {
	Has    Parts
	SHA256 [sha256.Size]byte

	NaN, PosInf, NegInf, Zeros uint64
	Finite                     uint64 // how many values min, max, mean and std are of; of none they mean nothing
	Min, Max, Mean, Std        float64
}

// Counts tells whether the values of a type are decoded, so that there are statistics.
func Counts(d tensor.DType) bool { return decode.Parts(d) > 0 }

// possible leaves out what a type does not have.
func possible(t *tensor.Info, want Parts) Parts {
	if !Counts(t.DType) {
		return want &^ Stats
	}
	return want
}

// Sum reads the t.Bytes elements of a tensor from src and computes the parts. What comes out does not
// depend on the number of cores.
func Sum(src io.ReaderAt, t *tensor.Info, want Parts) (Result, error) {
	want = possible(t, want)
	var sinks []func(p []byte)
	h := sha256.New()
	if want&Hash != 0 {
		sinks = append(sinks, func(p []byte) { h.Write(p) })
	}
	var count counter
	if want&Stats != 0 {
		count = newCounter(t)
		sinks = append(sinks, count.add)
	}
	_, unit := t.DType.Block()
	if err := feed(src, t.Bytes, unit, sinks); err != nil {
		return Result{}, err
	}
	r := Result{Has: want}
	if want&Hash != 0 {
		h.Sum(r.SHA256[:0])
	}
	if count != nil {
		r.take(count.total())
	}
	return r, nil
}

func (r *Result) take(t tally) {
	r.NaN, r.PosInf, r.NegInf, r.Zeros, r.Finite = t.nan, t.posInf, t.negInf, t.zeros, t.n
	if t.n > 0 {
		r.Min, r.Max, r.Mean, r.Std = t.min+0, t.max+0, t.mean, math.Sqrt(max(t.m2, 0)/float64(t.n))
	}
}

// merge takes over from another Result of the same tensor the parts that r lacks.
func (r *Result) merge(u *Result) {
	merged := *r
	if r.Has&Stats == 0 && u.Has&Stats != 0 {
		merged = *u
		merged.SHA256 = r.SHA256
	}
	if r.Has&Hash == 0 {
		merged.SHA256 = u.SHA256
	}
	merged.Has = r.Has | u.Has
	*r = merged
}
