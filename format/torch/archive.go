package torch

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"weightfs/format/tensor"
)

// A record is one member of the archive.
type record struct {
	name     string
	header   int64 // offset of the local header
	extent   tensor.Extent
	unpacked int64
	method   uint16
	crc      uint32
	file     *zip.File
}

// An archive is the directory of a zip file, every entry of which has been compared with its local
// header: readers that believe one or the other must see the same file.
type archive struct {
	r       io.ReaderAt
	top     string // directory of the first entry, with its slash
	records map[string]*record
}

const (
	localHeader  = 30
	flagEncrypt  = 1<<0 | 1<<6 | 1<<13 // in three ways, all of which torch refuses
	flagDeferred = 1 << 3              // sizes stand behind the data
	maxRatio     = 1032                // of deflate: 258 bytes for two bits
)

func openArchive(r io.ReaderAt, size int64) (*archive, error) {
	w := &window{r: r, size: size}
	z, err := zip.NewReader(w, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, directoryFault(r, size, err)
	}
	if len(z.File) == 0 {
		return nil, fault(-1, tensor.ErrMalformed, "the zip archive has no records")
	}
	a := &archive{r: r, records: make(map[string]*record, len(z.File))}
	if at := strings.IndexByte(z.File[0].Name, '/'); at >= 0 {
		a.top = z.File[0].Name[:at+1]
	}
	all := make([]*record, 0, len(z.File))
	for _, f := range z.File {
		rec, err := w.record(f)
		if err != nil {
			return nil, err
		}
		key := lower(f.Name)
		if _, ok := a.records[key]; ok {
			return nil, rec.fault(tensor.ErrMalformed, "is there twice, and readers disagree which one counts")
		}
		a.records[key] = rec
		all = append(all, rec)
	}
	return a, checkOverlap(all)
}

// directoryFault tells a file that was cut off from one that is damaged.
func directoryFault(r io.ReaderAt, size int64, err error) error {
	const endRecord, maxComment = 22, 1<<16 - 1
	tail := make([]byte, min(size, endRecord+maxComment))
	if _, rerr := r.ReadAt(tail, size-int64(len(tail))); rerr != nil && !errors.Is(rerr, io.EOF) {
		return fault(-1, tensor.ErrTruncated, "reading the end: %v", rerr)
	}
	end := tail[max(bytes.LastIndex(tail, []byte("PK\x05\x06")), 0):]
	whole := len(end) >= endRecord && len(end) >= endRecord+int(binary.LittleEndian.Uint16(end[endRecord-2:]))
	if whole && bytes.HasPrefix(end, []byte("PK\x05\x06")) {
		return fault(-1, tensor.ErrMalformed, "the zip archive's central directory is damaged: %v", err)
	}
	return fault(size, tensor.ErrTruncated, "truncated: the zip archive of %d bytes has no central directory at its end, which would tell how long it should be", size)
}

// A window is the file with a small buffer: local headers of small records lie close together. It
// remembers where the last read began, because zip.File keeps the offset of its header to itself
// and File.DataOffset reads there.
type window struct {
	r    io.ReaderAt
	size int64
	last int64
	off  int64
	buf  []byte
}

const windowSize = 4 << 10

// ReadAt reads through the buffer.
func (w *window) ReadAt(p []byte, off int64) (int, error) {
	w.last = off
	if len(p) >= windowSize || off < 0 {
		return w.r.ReadAt(p, off)
	}
	if off < w.off || off+int64(len(p)) > w.off+int64(len(w.buf)) {
		if w.buf == nil {
			w.buf = make([]byte, windowSize)
		}
		n, err := w.r.ReadAt(w.buf[:windowSize], off)
		w.off, w.buf = off, w.buf[:n]
		if n < len(p) {
			return copy(p, w.buf), noEOF(err)
		}
	}
	return copy(p, w.buf[off-w.off:]), nil
}

// noEOF is the error of a read that got less than it asked for.
func noEOF(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

// record finds where a directory entry's data lies.
func (w *window) record(f *zip.File) (*record, error) {
	off, err := f.DataOffset()
	rec := &record{name: f.Name, header: w.last, method: f.Method, crc: f.CRC32, file: f}
	if err != nil {
		return nil, rec.fault(tensor.ErrMalformed, "has no local header: %v", err)
	}
	if err := w.compare(rec, f); err != nil {
		return nil, err
	}
	packed, unpacked := f.CompressedSize64, f.UncompressedSize64
	switch {
	case off > w.size || packed > uint64(w.size-off):
		return nil, rec.fault(tensor.ErrTruncated, "is truncated: it has %d bytes at offset %d of a file of %d", packed, off, w.size)
	case unpacked > math.MaxInt64 || f.Method == zip.Deflate && unpacked/maxRatio > packed:
		return nil, rec.fault(tensor.ErrMalformed, "claims %d bytes, more than %d deflated bytes can hold", unpacked, packed)
	case f.Method == zip.Store && packed != unpacked:
		return nil, rec.fault(tensor.ErrMalformed, "is stored, but has two sizes: %d and %d", packed, unpacked)
	}
	rec.extent = tensor.Extent{Off: off, Len: int64(packed)}
	rec.unpacked = int64(unpacked)
	return rec, nil
}

// compare holds a directory entry against the local header that the last read began at.
func (w *window) compare(rec *record, f *zip.File) error {
	local := make([]byte, localHeader+len(f.Name))
	if _, err := w.ReadAt(local, rec.header); err != nil {
		return rec.fault(tensor.ErrTruncated, "is truncated: %v", err)
	}
	u16 := func(at int) uint16 { return binary.LittleEndian.Uint16(local[at:]) }
	flags, method, name := u16(6), u16(8), int(u16(26))
	packed := binary.LittleEndian.Uint32(local[18:])
	switch {
	case (f.Flags|flags)&flagEncrypt != 0:
		return rec.fault(tensor.ErrUnsupported, "is encrypted")
	case name != len(f.Name) || string(local[localHeader:]) != f.Name:
		return rec.fault(tensor.ErrMalformed, "has another name in its local header")
	case method != f.Method:
		return rec.fault(tensor.ErrMalformed, "has compression method %d, but %d in its local header", f.Method, method)
	case flags&flagDeferred == 0 && packed != 0 && packed != math.MaxUint32 && uint64(packed) != f.CompressedSize64:
		return rec.fault(tensor.ErrMalformed, "has %d bytes, but %d by its local header", f.CompressedSize64, packed)
	}
	return nil
}

// fault is a fault of the record.
func (rec *record) fault(reason error, format string, a ...any) *tensor.FormatError {
	return fault(rec.header, reason, "record %q %s", rec.name, fmt.Sprintf(format, a...))
}

// checkOverlap refuses records that share bytes, and an archive behind something else: torch counts
// offsets from the first byte, archive/zip finds them wherever the archive begins.
func checkOverlap(all []*record) error {
	slices.SortFunc(all, func(a, b *record) int { return cmp.Compare(a.header, b.header) })
	if first := all[0]; first.header != 0 {
		return fault(0, tensor.ErrMalformed, "the first record %q begins at offset %d: the archive lies behind something else",
			first.name, first.header)
	}
	for i := 1; i < len(all); i++ {
		before := all[i-1]
		if end := before.extent.Off + before.extent.Len; all[i].header < end {
			return fault(all[i].header, tensor.ErrMalformed, "record %q begins inside record %q, which ends at %d",
				all[i].name, before.name, end)
		}
	}
	return nil
}

// find looks a record up as torch does, without regard to case; nil when there is none.
func (a *archive) find(name string) *record { return a.records[lower(a.top+name)] }

// content reads a record of at most limit bytes. The checksum of a stored one is not looked at:
// torch.save can be told not to compute it.
func (a *archive) content(rec *record, limit int64) ([]byte, error) {
	if rec.unpacked > limit {
		return nil, rec.fault(tensor.ErrTooLarge, "of %d bytes exceeds the limit of %d", rec.unpacked, limit)
	}
	var stream io.Reader = io.NewSectionReader(a.r, rec.extent.Off, rec.extent.Len)
	switch rec.method {
	case zip.Store:
	case zip.Deflate:
		inflater, err := rec.file.Open()
		if err != nil {
			return nil, rec.fault(tensor.ErrMalformed, "cannot be inflated: %v", err)
		}
		defer inflater.Close()
		stream = inflater
	default:
		return nil, rec.badMethod()
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(stream, rec.unpacked+1)); err != nil {
		return nil, rec.fault(tensor.ErrMalformed, "cannot be read: %v", err)
	}
	if int64(b.Len()) != rec.unpacked {
		return nil, rec.fault(tensor.ErrMalformed, "has %d bytes instead of %d", b.Len(), rec.unpacked)
	}
	return b.Bytes(), nil
}

func (rec *record) badMethod() error {
	return rec.fault(tensor.ErrUnsupported, "has compression method %d, only stored (0) and deflated (8) are supported", rec.method)
}

// lower is what miniz does to names before it compares them.
func lower(s string) string {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if 'A' <= b[i] && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
