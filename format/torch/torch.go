// Package torch parses what torch.save writes: the zip archive of PyTorch 1.6 and later, and the
// row of pickles before it. Nothing of a pickle is ever called; see package pickle.
package torch

import (
	"bytes"
	"errors"
	"io"

	"weightfs/format/tensor"
)

const formatName = "pytorch"

// Parse reads a checkpoint of torch.save by its content: .pt, .pth, .bin and .ckpt are all the same.
func Parse(r io.ReaderAt, size int64) (*tensor.Header, error) {
	head := make([]byte, min(size, 512))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fault(0, tensor.ErrTruncated, "reading %d bytes: %v", len(head), err)
	}
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return parseArchive(r, size)
	case len(head) > 1 && head[0] == 0x80:
		return parseLegacy(r, size)
	}
	return nil, unreadable(head)
}

// unreadable names what is known and not read.
func unreadable(head []byte) error {
	at := func(off int, magic string) bool { return len(head) > off && bytes.HasPrefix(head[off:], []byte(magic)) }
	switch {
	case len(head) == 0:
		return fault(0, tensor.ErrTruncated, "empty file")
	case at(0, "PK\x05\x06"):
		return fault(0, tensor.ErrMalformed, "an empty zip archive holds no checkpoint")
	case at(257, "ustar"):
		return unsupported("a tar checkpoint of PyTorch 0.1", "load it with a PyTorch before 2.6 and save it again")
	case at(0, "PYTORCH1"):
		return unsupported("an archive of the PyTorch 1.0 preview", "")
	case at(4, "ET1"):
		return unsupported("an ExecuTorch program (.pte)", "")
	}
	return fault(0, tensor.ErrMalformed, "neither a zip archive nor a pickle of torch.save: it begins with %q", head[:min(len(head), 8)])
}
