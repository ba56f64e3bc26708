package numpy

import (
	"archive/zip"
	"bufio"
	"cmp"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"weightfs/format/tensor"
)

// methods are the ways in which zip writers pack members and weightfs does not unpack them.
var methods = map[uint16]string{9: "deflate64", 12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz"}

// An archive is an .npz that is being parsed.
type archive struct {
	spy     *lastRead
	size    int64
	header  *tensor.Header
	members map[string]*member
	tensors map[string]*member // by the tensor's name, which may come of `a` and of `a.npy`
	buf     *bufio.Reader
	inflate io.ReadCloser
}

func parseZip(r io.ReaderAt, size int64) (*tensor.Header, error) {
	a := &archive{
		spy: &lastRead{ReaderAt: r}, size: size, header: &tensor.Header{Format: "npz"},
		members: map[string]*member{}, tensors: map[string]*member{},
		buf: bufio.NewReaderSize(nil, 512),
	}
	z, err := zip.NewReader(a.spy, size)
	switch {
	case errors.Is(err, zip.ErrInsecurePath): // names are escaped before they become paths
	case errors.Is(err, zip.ErrFormat):
		return nil, zipFault(-1, tensor.ErrTruncated, "truncated: the zip archive of %d bytes has no sound central directory at its end, which would tell how long it should be", size)
	case err != nil:
		return nil, zipFault(-1, tensor.ErrMalformed, "zip directory: %v", err)
	}
	for _, f := range z.File {
		if err := a.add(f); err != nil {
			return nil, err
		}
	}
	if err := a.overlap(); err != nil {
		return nil, err
	}
	if len(z.File) > 0 && len(a.header.Tensors)+len(a.header.Warnings) == 0 {
		return nil, zipFault(-1, tensor.ErrUnsupported, "none of the %d members of the zip file is a .npy", len(z.File))
	}
	return a.header, nil
}

// add takes a member: as a tensor, as a warning, or not at all if it is no .npy.
func (a *archive) add(f *zip.File) error {
	m, err := a.locate(f)
	if err != nil {
		return err
	}
	if a.members[f.Name] != nil {
		return zipFault(m.off, tensor.ErrMalformed, "two members are named %q", f.Name)
	}
	a.members[f.Name] = m
	switch {
	case f.UncompressedSize64 < uint64(len(magic)):
		if m.named() {
			a.warn(m, fmt.Sprintf("its %d bytes are no .npy", f.UncompressedSize64))
		}
		return nil
	case f.Method != zip.Store && f.Method != zip.Deflate:
		if m.named() {
			a.warn(m, fmt.Sprintf("packed with %s, which weightfs does not unpack", methodName(f.Method)))
		}
		return nil
	}
	err = a.array(m)
	var fe *tensor.FormatError
	switch {
	case errors.Is(err, tensor.ErrUnsupported) && errors.As(err, &fe):
		a.warn(m, fe.Msg)
		return nil
	case errors.Is(err, errNoMagic) && errors.As(err, &fe):
		if m.named() {
			a.warn(m, fe.Msg)
		}
		return nil
	case errors.As(err, &fe):
		return m.fault(fe)
	}
	return err
}

func (a *archive) warn(m *member, reason string) {
	a.header.Warnings = append(a.header.Warnings, fmt.Sprintf("member %q is not shown: %s", m.Name, reason))
}

func methodName(method uint16) string {
	if name := methods[method]; name != "" {
		return fmt.Sprintf("%s (method %d)", name, method)
	}
	return fmt.Sprintf("method %d", method)
}

// array adds the tensor of a member that is a .npy. Of a deflated one only the header is inflated.
func (a *archive) array(m *member) error {
	size := int64(m.UncompressedSize64)
	h, err := readHeader(a.open(m), size)
	if err != nil {
		return err
	}
	t, err := h.info(strings.TrimSuffix(m.Name, ".npy"), size-h.size)
	if err != nil {
		return err
	}
	t.Extent = tensor.Extent{Off: m.data + h.size, Len: t.Bytes}
	if m.Method == zip.Deflate {
		t.Extent = tensor.Extent{Off: m.data, Len: int64(m.CompressedSize64)}
		if t.Layout == nil {
			t.Layout = &tensor.Layout{}
		}
		t.Layout.Pack, t.Layout.Unpacked, t.Layout.Skip, t.Layout.CRC32 = tensor.Deflate, size, h.size, m.CRC32
	}
	if other := a.tensors[t.Name]; other != nil {
		return fault(0, tensor.ErrMalformed, "member %q has the same name without .npy", other.Name)
	}
	a.tensors[t.Name] = m
	a.header.Tensors = append(a.header.Tensors, *t)
	return nil
}

// open gives a member's content, until the next call.
func (a *archive) open(m *member) io.Reader {
	a.buf.Reset(io.NewSectionReader(a.spy.ReaderAt, m.data, int64(m.CompressedSize64)))
	if m.Method == zip.Store {
		return a.buf
	}
	if a.inflate == nil {
		a.inflate = flate.NewReader(a.buf)
	} else if err := a.inflate.(flate.Resetter).Reset(a.buf, nil); err != nil {
		a.inflate = flate.NewReader(a.buf)
	}
	return a.inflate
}

// overlap refuses members that share bytes, as Python's zipfile does.
func (a *archive) overlap() error {
	members := make([]*member, 0, len(a.members))
	for _, m := range a.members {
		members = append(members, m)
	}
	slices.SortFunc(members, func(x, y *member) int {
		return cmp.Or(cmp.Compare(x.off, y.off), cmp.Compare(x.Name, y.Name))
	})
	for i := 1; i < len(members); i++ {
		if last, m := members[i-1], members[i]; m.off < last.end() {
			return zipFault(m.off, tensor.ErrMalformed, "member %q begins inside member %q, which ends at %d", m.Name, last.Name, last.end())
		}
	}
	return nil
}
