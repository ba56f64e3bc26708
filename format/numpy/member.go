package numpy

import (
	"archive/zip"
	"encoding/binary"
	"io"
	"strings"

	"weightfs/format/tensor"
)

// maxRatio is how many bytes deflate can make of one: runs of 258 at two bits each.
const maxRatio = 1032

// flagEncrypt is set of a member that is encrypted, in one of two ways.
const flagEncrypt = 1<<0 | 1<<6

// A member is a file of an archive; off is where its local header is, data its content.
type member struct {
	*zip.File
	off, data int64
}

// named tells whether np.load strips the member's extension.
func (m *member) named() bool { return strings.HasSuffix(m.Name, ".npy") }

func (m *member) end() int64 { return m.data + int64(m.CompressedSize64) }

// fault puts a fault of a member's content into its place in the archive.
func (m *member) fault(e *tensor.FormatError) *tensor.FormatError {
	e.Format, e.Tensor = "npz", strings.TrimSuffix(m.Name, ".npy")
	if m.Method == zip.Store {
		e.Off += m.data
	} else {
		e.Off = m.data
	}
	return e
}

func zipFault(off int64, reason error, format string, a ...any) *tensor.FormatError {
	e := fault(off, reason, format, a...)
	e.Format = "npz"
	return e
}

// lastRead remembers where the last read was.
type lastRead struct {
	io.ReaderAt
	off int64
}

// ReadAt reads and remembers.
func (l *lastRead) ReadAt(p []byte, off int64) (int, error) {
	l.off = off
	return l.ReaderAt.ReadAt(p, off)
}

// locate finds a member's content and compares the local header with the directory, which readers
// of zip files trust in different ways (GHSA-7q5r-7gvp-wc82). archive/zip does not tell where a
// local header is, but reads it last when it is asked for the content's offset.
func (a *archive) locate(f *zip.File) (*member, error) {
	data, err := f.DataOffset()
	off := a.spy.off
	if err != nil {
		return nil, zipFault(-1, tensor.ErrTruncated, "local header of member %q: %v", f.Name, err)
	}
	local := make([]byte, 30+len(f.Name))
	if n, err := a.spy.ReaderAt.ReadAt(local, off); n < len(local) {
		return nil, zipFault(off, tensor.ErrTruncated, "local header of member %q: %v", f.Name, err)
	}
	field := func(at int) uint16 { return binary.LittleEndian.Uint16(local[at:]) }
	nameLen := int(field(26))
	name := string(local[30 : 30+min(nameLen, len(f.Name))])
	switch {
	case nameLen != len(f.Name) || name != f.Name:
		return nil, zipFault(off, tensor.ErrMalformed, "member is %q in the zip directory, but %q in its local header", f.Name, name)
	case (f.Flags|field(6))&flagEncrypt != 0:
		return nil, zipFault(off, tensor.ErrUnsupported, "member %q is encrypted", f.Name)
	case f.Method != field(8):
		return nil, zipFault(off, tensor.ErrMalformed, "member %q is packed by method %d in the zip directory, but %d in its local header",
			f.Name, f.Method, field(8))
	}
	return &member{f, off, data}, a.checkSizes(f, data)
}

// checkSizes compares the sizes that the directory declares with the file and with each other.
func (a *archive) checkSizes(f *zip.File, data int64) error {
	packed, size := f.CompressedSize64, f.UncompressedSize64
	switch {
	case data > a.size || packed > uint64(a.size-data):
		return zipFault(data, tensor.ErrTruncated, "truncated: member %q takes %d bytes, but only %d remain", f.Name, packed, max(a.size-data, 0))
	case f.Method == zip.Store && packed != size:
		return zipFault(data, tensor.ErrMalformed, "member %q is stored in %d bytes, but declares %d", f.Name, packed, size)
	case f.Method == zip.Deflate && size/maxRatio > packed:
		return zipFault(data, tensor.ErrMalformed, "member %q declares %d bytes, more than its %d can unpack to", f.Name, size, packed)
	}
	return nil
}
