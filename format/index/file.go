package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/zeebo/xxh3"
	"golang.org/x/sync/errgroup"
)

// The file of an index: a fixed header, a checksum of each chunk of the body, and the body, which is
// the sections one after another, each as it lies in memory. Whatever is not as this program, on a
// machine of this byte order, would write it is no index: it is a cache, and is made again.
const (
	fileMagic   = "weightfs"
	fileVersion = 5 // raise it with every change of a section, of a DType's number, of a view's flag, or of what a parser shows
	sections    = 7
	headerSize  = 8 + 4 + 4 + 8*sections + 8
	chunkSize   = 4 << 20
	maxFile     = 16 << 30
)

// ErrDamaged: a file is no index of this version, or its bytes are not those that were written.
var ErrDamaged = errors.New("no usable index")

// Write writes the index and a head, which is the caller's.
func (x *Index) Write(w io.Writer, head []byte) error {
	parts := [sections][]byte{
		head, bytesOf(x.Records), bytesOf(x.Nodes), bytesOf(x.asides), bytesOf(x.layouts), bytesOf(x.dims), []byte(x.text),
	}
	var body []byte
	h := make([]byte, 0, headerSize)
	h = append(h, fileMagic...)
	h = binary.NativeEndian.AppendUint32(h, fileVersion)
	h = binary.NativeEndian.AppendUint32(h, chunkSize)
	for _, p := range parts {
		h = binary.NativeEndian.AppendUint64(h, uint64(len(p)))
		body = append(body, p...)
		body = append(body, make([]byte, align(len(p))-len(p))...)
	}
	sums := make([]byte, 0, 8*(len(body)/chunkSize+1))
	for at := 0; at < len(body); at += chunkSize {
		sums = binary.NativeEndian.AppendUint64(sums, xxh3.Hash(body[at:min(at+chunkSize, len(body))]))
	}
	h = binary.NativeEndian.AppendUint64(h, xxh3.Hash(append(h[:len(h):len(h)], sums...)))
	for _, p := range [][]byte{h, sums, body} {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// Read reads what Write wrote, of size bytes: the sections are used as they lie in the file. The
// checksums of its chunks are made on every core; there is no work for each tensor.
func Read(r io.ReaderAt, size int64) (head []byte, x *Index, err error) {
	var h [headerSize]byte
	if _, err := r.ReadAt(h[:], 0); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if string(h[:8]) != fileMagic || binary.NativeEndian.Uint32(h[8:]) != fileVersion || binary.NativeEndian.Uint32(h[12:]) != chunkSize {
		return nil, nil, fmt.Errorf("%w: another version", ErrDamaged)
	}
	var lens [sections]uint64
	var total uint64
	for i := range lens {
		lens[i] = binary.NativeEndian.Uint64(h[16+8*i:])
		if lens[i] > maxFile {
			return nil, nil, fmt.Errorf("%w: section of %d bytes", ErrDamaged, lens[i])
		}
		total += uint64(align(int(lens[i])))
	}
	chunks := (total + chunkSize - 1) / chunkSize
	if headerSize+8*chunks+total != uint64(size) {
		return nil, nil, fmt.Errorf("%w: %d bytes instead of %d", ErrDamaged, size, headerSize+8*chunks+total)
	}
	body, err := readBody(r, h[:], int(chunks), int64(total))
	if err != nil {
		return nil, nil, err
	}
	var parts [sections][]byte
	for i, n := range lens {
		parts[i], body = body[:n:n], body[align(int(n)):]
	}
	x = &Index{
		Records: sliceOf[Record](parts[1]), Nodes: sliceOf[Node](parts[2]), asides: sliceOf[aside](parts[3]),
		layouts: sliceOf[layout](parts[4]), dims: sliceOf[uint64](parts[5]),
		text: unsafe.String(unsafe.SliceData(parts[6]), len(parts[6])),
	}
	if len(x.Nodes) == 0 {
		return nil, nil, fmt.Errorf("%w: no root", ErrDamaged)
	}
	return parts[0], x, nil
}

// readBody reads the chunks side by side and compares them with their checksums.
func readBody(r io.ReaderAt, header []byte, chunks int, size int64) ([]byte, error) {
	sums := make([]byte, 8*chunks)
	if _, err := r.ReadAt(sums, headerSize); err != nil && len(sums) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	want := binary.NativeEndian.Uint64(header[headerSize-8:])
	if xxh3.Hash(append(header[:headerSize-8:headerSize-8], sums...)) != want {
		return nil, fmt.Errorf("%w: its header is damaged", ErrDamaged)
	}
	body := make([]byte, size)
	start := int64(headerSize + len(sums))
	var group errgroup.Group
	group.SetLimit(readers)
	for i := range chunks {
		group.Go(func() error {
			at := int64(i) * chunkSize
			part := body[at:min(at+chunkSize, size)]
			if _, err := r.ReadAt(part, start+at); err != nil && err != io.EOF {
				return fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			if xxh3.Hash(part) != binary.NativeEndian.Uint64(sums[8*i:]) {
				return fmt.Errorf("%w: damaged at %d", ErrDamaged, start+at)
			}
			return nil
		})
	}
	return body, group.Wait()
}

// readers read an index side by side: copying and checking are bound by memory.
const readers = 4

func align(n int) int { return (n + 7) &^ 7 }

// bytesOf is the memory of a section. Its elements hold no pointer and no padding that is not named.
func bytesOf[T any](s []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(t)))
}

// sliceOf is a section of that memory; a section begins at a multiple of 8. Where an empty one begins there
// may be no room for an element, to which no pointer may be made then.
func sliceOf[T any](b []byte) []T {
	var t T
	if len(b) < int(unsafe.Sizeof(t)) {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}
