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

// parseSlice reads indices and ranges as NumPy takes them between brackets, without steps: `0:3`,
// `:, -1`, `..., 5`. The brackets may stand there. Dimensions that are not named are whole.
func parseSlice(text string, shape []uint64) ([]span, error) {
	part := make([]span, len(shape))
	for d, dim := range shape {
		part[d] = span{hi: dim}
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
		if !ok && strings.Count(item, ":") > 1 {
			return nil, usageError("--slice %q: %q has a step, which is not supported: START:STOP", text, item)
		}
		if !ok {
			return nil, usageError("--slice %q: %q is neither an index nor START:STOP of a dimension of %d", text, item, shape[d])
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
