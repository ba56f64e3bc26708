// Package numpy finds where the arrays of .npy and .npz files lie. It unpickles nothing, so that arrays
// of objects are not read; package elements reads the others, deflated or in Fortran order.
package numpy

import (
	"fmt"
	"io"

	"weightfs/format/tensor"
)

// Parse reads a .npy, whose one tensor has no name, or an .npz, whose tensors are named for their
// members. An array of a kind that is not shown (objects, strings, structures) is an error in a .npy
// and a warning in an .npz, whose other members stay usable.
func Parse(r io.ReaderAt, size int64) (*tensor.Header, error) {
	var head [6]byte
	n, err := r.ReadAt(head[:min(max(size, 0), 6)], 0)
	switch {
	case n == 0 && size <= 0:
		return nil, fault(0, tensor.ErrTruncated, "empty file")
	case n < 4 && err != nil:
		return nil, fault(0, tensor.ErrTruncated, "reading the first bytes: %v", err)
	case string(head[:2]) == "PK":
		return parseZip(r, size)
	}
	h, err := readHeader(io.NewSectionReader(r, 0, size), size)
	if err != nil {
		return nil, err
	}
	t, err := h.info("", size-h.size)
	if err != nil {
		return nil, err
	}
	t.Extent = tensor.Extent{Off: h.size, Len: t.Bytes}
	header := &tensor.Header{Format: "npy", Tensors: []tensor.Info{*t}}
	if rest := size - h.size - t.Bytes; rest > 0 {
		header.Warnings = append(header.Warnings, fmt.Sprintf("%d bytes follow the array and are not shown", rest))
	}
	return header, nil
}
