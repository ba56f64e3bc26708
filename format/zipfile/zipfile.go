// Package zipfile reads the directory of a zip file, and holds every entry against its local header and
// against the others: readers of zip files believe one or the other (GHSA-7q5r-7gvp-wc82), and all of them
// must see the same file. What the entries hold, and what they may be called, is for the packages of .npz
// and of torch.save.
package zipfile

import (
	"archive/zip"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"weightfs/format/tensor"
)

// A Kind is what messages call an archive's format and one of its entries.
type Kind struct{ Format, Entry string }

// An Entry is a file of the archive. Its sizes, its name and its method are those of its local header too,
// and its content lies within the file.
type Entry struct {
	*zip.File
	Header int64         // offset of the local header
	Extent tensor.Extent // of the content, packed by Method

	kind Kind
}

// Unpacked is the size of the content when it is unpacked, as the directory claims.
func (e *Entry) Unpacked() int64 { return int64(e.UncompressedSize64) }

// Fault is a fault of the entry, at its local header. The message goes on where the entry's name ends.
func (e *Entry) Fault(reason error, format string, a ...any) *tensor.FormatError {
	return &tensor.FormatError{
		Format: e.kind.Format, Off: e.Header, Err: reason,
		Msg: fmt.Sprintf("%s %q %s", e.kind.Entry, e.Name, fmt.Sprintf(format, a...)),
	}
}

const (
	localHeader  = 30
	flagEncrypt  = 1<<0 | 1<<6 | 1<<13 // in three ways, none of which anybody reads
	flagDeferred = 1 << 3              // sizes stand behind the content
	maxRatio     = 1032                // of deflate: 258 bytes for two bits
)

// Open reads the directory of a zip file of size bytes, in its order. Two entries of one name are let pass,
// and so are names that lead out of the archive. The entries may be read, one after another.
func Open(r io.ReaderAt, size int64, kind Kind) ([]*Entry, error) {
	w := &window{r: r}
	files, start, err := directory(w, size, kind)
	if err != nil {
		return nil, err
	}
	entries := make([]*Entry, len(files))
	for i, f := range files {
		off, err := f.DataOffset()
		e := &Entry{File: f, Header: w.last, kind: kind}
		entries[i] = e
		if err != nil {
			return nil, e.Fault(tensor.ErrMalformed, "has no local header: %v", err)
		}
		if err := e.compare(w); err != nil {
			return nil, err
		}
		if err := e.place(off, size); err != nil {
			return nil, err
		}
	}
	if err := overlap(entries, start); err != nil {
		return nil, err
	}
	return entries, nil
}

// compare holds the entry against its local header, at which the last read began.
func (e *Entry) compare(w *window) error {
	local := make([]byte, localHeader+len(e.Name))
	if n, err := w.ReadAt(local, e.Header); n < len(local) {
		return e.Fault(tensor.ErrTruncated, "is truncated: %v", err)
	}
	u16 := func(at int) uint16 { return binary.LittleEndian.Uint16(local[at:]) }
	flags, method, length := u16(6), u16(8), int(u16(26))
	packed := binary.LittleEndian.Uint32(local[18:])
	name := local[localHeader:]
	switch {
	case (e.Flags|flags)&flagEncrypt != 0:
		return e.Fault(tensor.ErrUnsupported, "is encrypted")
	case length != len(e.Name) || string(name) != e.Name:
		return e.Fault(tensor.ErrMalformed, "has another name in its local header: %q", name[:min(length, len(name))])
	case method != e.Method:
		return e.Fault(tensor.ErrMalformed, "has compression method %d, but %d in its local header", e.Method, method)
	case flags&flagDeferred == 0 && packed != 0 && packed != math.MaxUint32 && uint64(packed) != e.CompressedSize64:
		return e.Fault(tensor.ErrMalformed, "has %d bytes, but %d by its local header", e.CompressedSize64, packed)
	}
	return nil
}

// place compares the sizes that the directory tells with the file, and with each other.
func (e *Entry) place(off, size int64) error {
	packed, unpacked := e.CompressedSize64, e.UncompressedSize64
	switch {
	case off > size || packed > uint64(size-off):
		return e.Fault(tensor.ErrTruncated, "is truncated: it has %d bytes at offset %d of a file of %d", packed, off, size)
	case unpacked > math.MaxInt64 || e.Method == zip.Deflate && unpacked/maxRatio > packed:
		return e.Fault(tensor.ErrMalformed, "claims %d bytes, more than %d deflated bytes can hold", unpacked, packed)
	case e.Method == zip.Store && packed != unpacked:
		return e.Fault(tensor.ErrMalformed, "is stored, but has two sizes: %d and %d", packed, unpacked)
	}
	e.Extent = tensor.Extent{Off: off, Len: int64(packed)}
	return nil
}

// overlap refuses entries that share bytes with each other or the directory, as Python's zipfile does.
func overlap(entries []*Entry, directory int64) error {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b *Entry) int { return cmp.Or(cmp.Compare(a.Header, b.Header), cmp.Compare(a.Name, b.Name)) })
	for i := 1; i < len(entries); i++ {
		before := entries[i-1]
		if end := before.Extent.Off + before.Extent.Len; entries[i].Header < end {
			return entries[i].Fault(tensor.ErrMalformed, "begins inside %s %q, which ends at %d", before.kind.Entry, before.Name, end)
		}
	}
	for _, e := range entries {
		if end := e.Extent.Off + e.Extent.Len; end > directory {
			return e.Fault(tensor.ErrMalformed, "ends at %d, inside the central directory, which begins at %d", end, directory)
		}
	}
	return nil
}
