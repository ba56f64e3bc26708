package cli

import (
	"strconv"
	"strings"
)

// A span is the part of one dimension that is shown: lo to hi, which is left out, or an index.
type span struct {
	lo, hi uint64
	index  bool
}

// parseSlice reads what NumPy takes between brackets, without steps: `0:3`, `:, -1`, `5`. Dimensions
// that are not named are whole.
func parseSlice(text string, shape []uint64) ([]span, error) {
	part := make([]span, len(shape))
	for d, dim := range shape {
		part[d] = span{hi: dim}
	}
	if strings.TrimSpace(text) == "" {
		return part, nil
	}
	items := strings.Split(text, ",")
	if len(items) > len(shape) {
		return nil, usageError("--slice %q has %d dimensions, the tensor has %d", text, len(items), len(shape))
	}
	for d, item := range items {
		s, ok := parseSpan(strings.TrimSpace(item), shape[d])
		if !ok {
			return nil, usageError("--slice %q: %q is neither an index nor START:STOP of a dimension of %d", text, item, shape[d])
		}
		part[d] = s
	}
	return part, nil
}

func parseSpan(item string, dim uint64) (span, bool) {
	start, stop, isRange := strings.Cut(item, ":")
	if !isRange {
		i, ok := position(item, dim)
		return span{lo: i, hi: i + 1, index: true}, ok && i < dim
	}
	s := span{hi: dim}
	ok := true
	if start = strings.TrimSpace(start); start != "" {
		s.lo, ok = position(start, dim)
	}
	if stop = strings.TrimSpace(stop); stop != "" && ok {
		s.hi, ok = position(stop, dim)
	}
	s.lo, s.hi = min(s.lo, dim), min(s.hi, dim)
	s.hi = max(s.hi, s.lo)
	return s, ok
}

// position reads an index; a negative one counts from the end.
func position(text string, dim uint64) (uint64, bool) {
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		n, err := strconv.ParseUint(rest, 10, 64)
		if err != nil || n > dim {
			return 0, err == nil
		}
		return dim - n, true
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}
