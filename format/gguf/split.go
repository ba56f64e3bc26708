package gguf

import (
	"math"

	"weightfs/format/tensor"
)

// Split gives the place of a file in a split set: no counts from 0 (the names of the files from 1),
// count is the number of files, and total the number of tensors in all of them, -1 where the file
// does not say. ok is false for a file that is no part of a set. Nothing is checked against the
// other files, and no need not be below count.
func Split(h *tensor.Header) (no, count, total int, ok bool) {
	no, okNo := small(h.Meta.Get("split.no"))
	count, okCount := small(h.Meta.Get("split.count"))
	total, okTotal := small(h.Meta.Get("split.tensors.count"))
	if !okTotal {
		total = -1
	}
	return no, count, total, okNo && okCount && count > 0
}

func small(value any) (int, bool) {
	n, ok := unsigned(value)
	if !ok || n > math.MaxInt32 {
		return 0, false
	}
	return int(n), true
}
