// Package tensor is the model that every container is parsed into: tensors with their element type,
// shape and place in a file, and the faults that a parser finds.
package tensor

import (
	"fmt"
	"strings"
)

// maxWarnings bounds the list of warnings, of which the rest is counted, and maxWarning the bytes of one.
const (
	maxWarnings = 1000
	maxWarning  = 4 << 10
)

// A Header is what Parse of a container's package returns.
type Header struct {
	Format  string // `safetensors`, `gguf`, `pytorch`, `npy`, `npz`, `onnx`
	Tensors []Info // in the order of the file
	Meta    Object // the container's own key/value metadata, in the order of the file

	// DataStart is where the byte buffer begins to which a safetensors header's data_offsets are
	// relative; 0 in formats that have no such numbers. json/ shows Extent.Off - DataStart.
	DataStart int64

	// Warnings name tensors that cannot be shown (and have no Info) with the reason, and oddities.
	Warnings []string
	Untold   int // warnings beyond the limit, which the last one counts
	// Tolerable faults are harmless for reading (a gap, bytes after the last tensor). format refuses
	// the file for the first of them, or with --lenient makes them warnings.
	Tolerable []*FormatError
}

// Warn adds a warning. A file of many small faults must not make a list many times its own size.
func (h *Header) Warn(format string, a ...any) {
	if len(h.Warnings) < maxWarnings {
		w := fmt.Sprintf(format, a...)
		if len(w) > maxWarning {
			w = strings.ToValidUTF8(w[:maxWarning], "") + "…"
		}
		h.Warnings = append(h.Warnings, w)
		return
	}
	if h.Untold == 0 {
		h.Warnings = append(h.Warnings, "")
	}
	h.Untold++
	h.Warnings[maxWarnings] = fmt.Sprintf("%d more of the like", h.Untold)
}

// An Extent is a byte range of a file. A parser has checked that Off+Len neither overflows nor
// passes the end of the file.
type Extent struct{ Off, Len int64 }

// An Info describes one tensor.
type Info struct {
	Name  string // as stored; may be any bytes
	DType DType
	Shape []uint64 // row-major, as NumPy prints it; for packed types it counts elements
	Bytes int64    // size of the elements: row-major, little-endian, as raw/ shows them

	// File is empty for the parsed file itself, else the relative path, as stored and unchecked,
	// of another file that holds the bytes (ONNX external data). format checks and opens it.
	File string
	// Extent is where the bytes lie. Without Layout it holds the very elements, Extent.Len == Bytes.
	// In another file (File != "") Len -1 means up to its end; format checks the range.
	Extent Extent
	// Layout is nil when Extent holds the elements as raw/ shows them.
	Layout *Layout

	// Extra is what else json/ tells of the tensor: strides, ggml `ne`, scale, stored byte order.
	Extra Object
}

// A Layout says how the elements are made from the stored bytes. It is plain data, so that it can
// be kept in the index; package elements reads through it.
type Layout struct {
	// Pack says how the file stores the bytes; Extent is then the packed range, and Unpacked the
	// exact number of bytes that come out of it, of which those from Skip on are the tensor's
	// storage (behind the header of a .npy inside an .npz).
	Pack     Pack
	Unpacked int64
	Skip     int64
	CRC32    uint32 // of the unpacked bytes, checked when they are unpacked; 0 where none is known

	// Strides, in elements and none negative, one for each dimension; nil for row-major. The
	// first element is the first of the (unpacked, skipped) storage.
	Strides []int64
	Swap    bool // every DType.Word() bytes are reversed: the file is big-endian
	Neg     bool // the values are the stored ones negated (torch's lazy neg)
	Conj    bool // the imaginary parts are negated (torch's lazy conj)
}

// Pack is how a range of a file is packed.
type Pack uint8

// The packings. Stored is none. Varint is protobuf's packed repeated int32/int64/uint64, each value
// one element, cut to the element's width. Fields is what protobuf does not pack: each value, a number of
// any of its types, behind the key of its own field.
const (
	Stored Pack = iota
	Deflate
	Varint
	Fields
)

// Reason says in a few words why the tensor is not one range of its file, for `stored` in
// tensors.json; empty where it is.
func (l *Layout) Reason() string {
	switch {
	case l == nil:
		return ""
	case l.Pack == Deflate:
		return "deflated"
	case l.Pack == Varint:
		return "varint"
	case l.Pack == Fields:
		return "separate fields"
	case l.Neg || l.Conj:
		return "lazily negated or conjugated view"
	case l.Strides != nil:
		return "strided"
	case l.Swap:
		return "big-endian"
	}
	return ""
}
