package numpy

import (
	"archive/zip"
	"bufio"
	"compress/flate"
	"errors"
	"fmt"
	"io"

	"weightfs/format/tensor"
	"weightfs/format/zipfile"
)

// methods are the ways in which zip writers pack members and weightfs does not unpack them.
var methods = map[uint16]string{9: "deflate64", 12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz"}

// An archive is an .npz that is being parsed.
type archive struct {
	r       io.ReaderAt
	header  *tensor.Header
	members map[string]bool
	tensors map[string]*member // by the tensor's name, which may come of `a` and of `a.npy`
	buf     *bufio.Reader
	inflate io.ReadCloser
}

func parseZip(r io.ReaderAt, size int64) (*tensor.Header, error) {
	a := &archive{
		r: r, header: &tensor.Header{Format: "npz"},
		members: map[string]bool{}, tensors: map[string]*member{},
		buf: bufio.NewReaderSize(nil, 512),
	}
	entries, err := zipfile.Open(r, size, zipfile.Kind{Format: "npz", Entry: "member"})
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if err := a.add(newMember(e)); err != nil {
			return nil, err
		}
	}
	if len(entries) > 0 && len(a.header.Tensors)+len(a.header.Warnings) == 0 {
		return nil, zipFault(-1, tensor.ErrUnsupported, "none of the %d members of the zip file is a .npy", len(entries))
	}
	return a.header, nil
}

// add takes a member: as a tensor, as a warning, or not at all if it is no .npy.
func (a *archive) add(m *member) error {
	if a.members[m.name] {
		return zipFault(m.Header, tensor.ErrMalformed, "two members are named %q", m.name)
	}
	a.members[m.name] = true
	switch {
	case m.Unpacked() < int64(len(magic)):
		if m.named() {
			a.warn(m, fmt.Sprintf("its %d bytes are no .npy", m.Unpacked()))
		}
		return nil
	case m.Method != zip.Store && m.Method != zip.Deflate:
		if m.named() {
			a.warn(m, fmt.Sprintf("packed with %s, which weightfs does not unpack", methodName(m.Method)))
		}
		return nil
	}
	err := a.array(m)
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
	a.header.Warn("member %q is not shown: %s", m.name, reason)
}

func methodName(method uint16) string {
	if name := methods[method]; name != "" {
		return fmt.Sprintf("%s (method %d)", name, method)
	}
	return fmt.Sprintf("method %d", method)
}

// array adds the tensor of a member that is a .npy. Of a deflated one only the header is inflated.
func (a *archive) array(m *member) error {
	size := m.Unpacked()
	h, err := readHeader(a.open(m), size)
	if err != nil {
		return err
	}
	t, err := h.info(m.array(), size-h.size)
	if err != nil {
		return err
	}
	t.Extent = tensor.Extent{Off: m.Extent.Off + h.size, Len: t.Bytes}
	if m.Method == zip.Deflate {
		t.Extent = m.Extent
		if t.Layout == nil {
			t.Layout = &tensor.Layout{}
		}
		t.Layout.Pack, t.Layout.Unpacked, t.Layout.Skip, t.Layout.CRC32 = tensor.Deflate, size, h.size, m.CRC32
	}
	if other := a.tensors[t.Name]; other != nil {
		return fault(0, tensor.ErrMalformed, "member %q has the same name without .npy", other.name)
	}
	a.tensors[t.Name] = m
	a.header.Tensors = append(a.header.Tensors, *t)
	return nil
}

// open gives a member's content, until the next call.
func (a *archive) open(m *member) io.Reader {
	a.buf.Reset(io.NewSectionReader(a.r, m.Extent.Off, m.Extent.Len))
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
