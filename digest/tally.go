package digest

import "math"

// A tally counts numbers and keeps the moments of the finite ones. Products are rounded by a
// conversion of their own, so that no processor fuses them and the result is the same on all.
type tally struct {
	nan, posInf, negInf, zeros uint64

	n        uint64 // finite numbers, of which the rest tells
	min, max float64
	mean     float64
	m2       float64 // sum of the squared distances from the mean
}

// merge adds what u counted, by the parallel algorithm of Chan, Golub and LeVeque.
func (t *tally) merge(u *tally) {
	t.nan += u.nan
	t.posInf += u.posInf
	t.negInf += u.negInf
	t.zeros += u.zeros
	switch {
	case u.n == 0:
		return
	case t.n == 0:
		t.n, t.min, t.max, t.mean, t.m2 = u.n, u.min, u.max, u.mean, u.m2
		return
	}
	t.min, t.max = min(t.min, u.min), max(t.max, u.max)
	share := float64(u.n) / float64(t.n+u.n)
	d := u.mean - t.mean
	t.mean += float64(d * share)
	t.m2 += u.m2 + float64(float64(d*share)*d)*float64(t.n)
	t.n += u.n
}

// special counts a number that is NaN or infinite, and tells whether it was one.
func (t *tally) special(x float64, n uint64) bool {
	switch {
	case x != x:
		t.nan += n
	case x > math.MaxFloat64:
		t.posInf += n
	case x < -math.MaxFloat64:
		t.negInf += n
	default:
		return false
	}
	return true
}

// tallyLen is how many numbers are counted at once: two passes over them stay in the first cache.
const tallyLen = 4096

func (t *tally) addFloats32(v []float32) {
	for len(v) > 0 {
		n := min(len(v), tallyLen)
		u, finite := tallyFinite(v[:n])
		if !finite {
			u = tallyAny(v[:n])
		}
		t.merge(&u)
		v = v[n:]
	}
}

func (t *tally) addFloats64(v []float64) {
	for len(v) > 0 {
		n := min(len(v), tallyLen)
		u := tallyAny(v[:n])
		t.merge(&u)
		v = v[n:]
	}
}

// tallyFinite counts numbers that are all finite, else it fails. The mean comes first and then the
// distances from it, which is sound whatever the mean is.
func tallyFinite(v []float32) (t tally, ok bool) {
	lo, hi := v[0], v[0]
	var s0, s1, s2, s3 float64
	var zeros uint64
	n := len(v) &^ 3
	for i := 0; i < n; i += 4 {
		w := v[i : i+4 : i+4]
		a, b, c, d := w[0], w[1], w[2], w[3]
		s0 += float64(a)
		s1 += float64(b)
		s2 += float64(c)
		s3 += float64(d)
		zeros += isZero(a) + isZero(b) + isZero(c) + isZero(d)
		// The built-in min and max look for NaN and are half as fast.
		if a < lo {
			lo = a
		}
		if a > hi {
			hi = a
		}
		if b < lo {
			lo = b
		}
		if b > hi {
			hi = b
		}
		if c < lo {
			lo = c
		}
		if c > hi {
			hi = c
		}
		if d < lo {
			lo = d
		}
		if d > hi {
			hi = d
		}
	}
	for _, a := range v[n:] {
		s0 += float64(a)
		zeros += isZero(a)
		lo, hi = min(lo, a), max(hi, a)
	}
	sum := s0 + s1 + s2 + s3
	if sum-sum != 0 { // float32 numbers have no infinite sum of their own
		return t, false
	}
	t = tally{zeros: zeros, n: uint64(len(v)), min: float64(lo), max: float64(hi)}
	t.mean, t.m2 = moments(v, sum)
	return t, true
}

// isZero is 1 for a zero of either sign, without a branch: the zeros of a sparse tensor are not
// predicted.
func isZero(v float32) uint64 { return (uint64(math.Float32bits(v)<<1) - 1) >> 63 }

// moments are the mean of numbers whose sum is known, and the sum of the squared distances from it.
// The sum was rounded; that of the distances, which are small, corrects it.
func moments[F float32 | float64](v []F, sum float64) (mean, m2 float64) {
	size := float64(len(v))
	mean = sum / size
	var s0, s1, s2, s3, q0, q1, q2, q3 float64
	n := len(v) &^ 3
	for i := 0; i < n; i += 4 {
		w := v[i : i+4 : i+4]
		a, b, c, d := float64(w[0])-mean, float64(w[1])-mean, float64(w[2])-mean, float64(w[3])-mean
		s0, s1, s2, s3 = s0+a, s1+b, s2+c, s3+d
		q0 += float64(a * a)
		q1 += float64(b * b)
		q2 += float64(c * c)
		q3 += float64(d * d)
	}
	for _, x := range v[n:] {
		a := float64(x) - mean
		s0 += a
		q0 += float64(a * a)
	}
	rest := s0 + s1 + s2 + s3
	return mean + rest/size, q0 + q1 + q2 + q3 - float64(rest*rest)/size
}

// tallyAny counts numbers of which some may be NaN or infinite.
func tallyAny[F float32 | float64](v []F) (t tally) {
	var buf [tallyLen]F
	finite := buf[:0]
	var sum float64
	lo, hi := F(math.Inf(1)), F(math.Inf(-1))
	for _, x := range v {
		if x-x != 0 {
			t.special(float64(x), 1)
			continue
		}
		if x == 0 {
			t.zeros++
		}
		if x < lo {
			lo = x
		}
		if x > hi {
			hi = x
		}
		sum += float64(x)
		finite = append(finite, x)
	}
	if len(finite) == 0 {
		return t
	}
	t.n, t.min, t.max = uint64(len(finite)), float64(lo), float64(hi)
	t.mean, t.m2 = moments(finite, sum)
	return t
}

// tallyCounts counts values that occur several times each.
func tallyCounts(values []float64, counts []uint64) (t tally) {
	t.min, t.max = math.Inf(1), math.Inf(-1)
	var sum float64
	for i, x := range values {
		if t.special(x, counts[i]) {
			continue
		}
		if x == 0 {
			t.zeros += counts[i]
		}
		t.n += counts[i]
		t.min, t.max = min(t.min, x), max(t.max, x)
		sum += float64(x * float64(counts[i]))
	}
	if t.n == 0 {
		return t
	}
	t.mean = sum / float64(t.n)
	var rest float64
	for i, x := range values {
		if d := x - t.mean; d-d == 0 {
			rest += float64(d * float64(counts[i]))
			t.m2 += float64(float64(d*d) * float64(counts[i]))
		}
	}
	t.mean += rest / float64(t.n)
	t.m2 -= float64(rest*rest) / float64(t.n)
	return t
}
