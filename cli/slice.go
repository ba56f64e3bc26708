package cli

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// A span is the part of one dimension that is shown: n positions from start on, a step apart, or an
// index, whose dimension is gone.
type span struct {
	start uint64
	step  int64
	n     uint64
	index bool
}

// at is the i-th position.
func (s span) at(i uint64) uint64 { return s.start + i*uint64(s.step) }

func whole(dim uint64) span { return span{step: 1, n: dim} }

// parseSlice reads indices and ranges as NumPy takes them between brackets: `0:3`, `:, -1`, `..., ::2`.
// The brackets may stand there. Dimensions that are not named are whole.
func parseSlice(text string, shape []uint64) ([]span, error) {
	part := make([]span, len(shape))
	for d, dim := range shape {
		part[d] = whole(dim)
	}
	if strings.TrimSpace(text) == "" {
		return part, nil
	}
	inner := strings.TrimSpace(text)
	if strings.HasPrefix(inner, "[") && strings.HasSuffix(inner, "]") {
		inner = inner[1 : len(inner)-1]
	}
	items, ok := fillEllipsis(strings.Split(inner, ","), len(shape))
	if !ok {
		return nil, usageError("--slice %q has more than one ...", text)
	}
	if strings.TrimSpace(inner) == "" {
		return part, nil
	}
	if len(items) > len(shape) {
		return nil, usageError("--slice %q has %d dimensions, the tensor has %d", text, len(items), len(shape))
	}
	for d, item := range items {
		s, ok := parseSpan(strings.TrimSpace(item), shape[d])
		if _, index := integer(item); !ok && index {
			return nil, usageError("--slice %q: index %s is out of range of dimension %d of the shape %s, which has %d", text, strings.TrimSpace(item), d, shapeText(shape), shape[d])
		}
		if !ok {
			return nil, usageError("--slice %q: %q is neither an index nor START:STOP:STEP of a dimension of %d", text, item, shape[d])
		}
		part[d] = s
	}
	return part, nil
}

// fillEllipsis puts whole dimensions in the place of `...`, which may stand there once.
func fillEllipsis(items []string, dims int) (filled []string, ok bool) {
	seen := false
	for _, item := range items {
		if strings.TrimSpace(item) != "..." {
			filled = append(filled, item)
			continue
		}
		if seen {
			return nil, false
		}
		seen = true
		for range dims - (len(items) - 1) {
			filled = append(filled, ":")
		}
	}
	return filled, true
}

func parseSpan(item string, dim uint64) (span, bool) {
	words := strings.Split(item, ":")
	length := int64(min(dim, math.MaxInt64)) // a longer one is of a tensor without elements
	if len(words) == 1 {
		i, ok := integer(item)
		if i < 0 {
			i += length
		}
		return span{start: uint64(i), step: 1, n: 1, index: true}, ok && 0 <= i && i < length
	}
	step, ok := int64(1), len(words) <= 3
	if len(words) == 3 && strings.TrimSpace(words[2]) != "" {
		step, ok = integer(words[2])
		step = max(step, -math.MaxInt64)
	}
	first, last := int64(0), length // the ends of a range that names none
	if step < 0 {
		first, last = length-1, -1
	}
	start, okStart := bound(words[0], first, length, step)
	stop, okStop := bound(words[1], last, length, step)
	if !ok || !okStart || !okStop || step == 0 {
		return span{}, false
	}
	s := span{start: uint64(start), step: step}
	switch {
	case step > 0 && start < stop:
		s.n = uint64((stop-start-1)/step) + 1
	case step < 0 && stop < start:
		s.n = uint64((start-stop-1)/-step) + 1
	}
	return s, true
}

// bound reads an end of a range. A negative one counts from the end, and one outside of the dimension
// is brought to where a walk by that step would enter or leave it.
func bound(text string, otherwise, length, step int64) (int64, bool) {
	if strings.TrimSpace(text) == "" {
		return otherwise, true
	}
	n, ok := integer(text)
	if n < 0 {
		n += length
	}
	if step < 0 {
		return min(max(n, -1), length-1), ok
	}
	return min(max(n, 0), length), ok
}

// integer reads a number; one beyond 64 bits is the largest or the least, which is as good here.
func integer(text string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}
