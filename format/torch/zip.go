package torch

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"weightfs/format/tensor"
	"weightfs/format/torch/pickle"
)

const (
	// maxPickle bounds a data.pkl that must be inflated into memory; a stored one is read in place.
	maxPickle = 256 << 20
	maxSmall  = 1 << 10
	// The versions of the archive that torch reads.
	minVersion, maxVersion = 1, 10
)

// parseArchive reads the archive that torch.save has written since 1.6.
func parseArchive(r io.ReaderAt, size int64) (*tensor.Header, error) {
	a, err := openArchive(r, size)
	if err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	big, err := a.bigEndian()
	if err != nil {
		return nil, err
	}
	h := &tensor.Header{Format: formatName}
	p, err := a.pickle(h)
	if err != nil {
		return nil, err
	}
	find := func(id *storageID) (*storage, error) { return a.storage(id, big) }
	if err := findTensors(h, p, find); err != nil {
		return nil, err
	}
	return h, nil
}

// check refuses archives that are not torch.save's, by what they are.
func (a *archive) check() error {
	switch {
	case a.records["serialized_exported_program.json"] != nil || a.top != "" && a.find("archive_format") != nil:
		return unsupported("a program of torch.export (.pt2)", "save the module's state_dict() instead")
	case a.top == "":
		return fault(-1, tensor.ErrMalformed, "the records of the zip archive are not in a directory: no archive of torch.save")
	case a.find("constants.pkl") != nil:
		return unsupported("a TorchScript archive", "torch.jit.load it and save its state_dict()")
	case a.find(".data/extern_modules") != nil:
		return unsupported("an archive of torch.package", "")
	case a.find("data.pkl") == nil:
		return fault(-1, tensor.ErrMalformed, "the zip archive has no record %q: no archive of torch.save", a.top+"data.pkl")
	}
	return a.checkVersion()
}

func (a *archive) checkVersion() error {
	rec := a.find(".data/version")
	if rec == nil {
		rec = a.find("version")
	}
	if rec == nil {
		return fault(-1, tensor.ErrMalformed, "the zip archive has no record %q: no archive of torch.save", a.top+"version")
	}
	b, err := a.content(rec, maxSmall)
	if err != nil {
		return err
	}
	v, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return rec.Fault(tensor.ErrMalformed, "is %q, no number", b)
	}
	if v < minVersion || v > maxVersion {
		return rec.Fault(tensor.ErrUnsupported, "is %d, only %d to %d are known", v, minVersion, maxVersion)
	}
	return nil
}

// bigEndian reads the record byteorder. Without it the elements are little-endian, as torch decided
// for its own old files (pytorch/pytorch#108523).
func (a *archive) bigEndian() (bool, error) {
	rec := a.find("byteorder")
	if rec == nil {
		return false, nil
	}
	b, err := a.content(rec, maxSmall)
	if err != nil {
		return false, err
	}
	switch string(b) {
	case "little":
		return false, nil
	case "big":
		return true, nil
	}
	return false, rec.Fault(tensor.ErrMalformed, "is %q, neither little nor big", b)
}

// pickle loads data.pkl.
func (a *archive) pickle(h *tensor.Header) (*pickle.Pickle, error) {
	rec := a.find("data.pkl")
	if rec.Method == zip.Store {
		c := tensor.NewCursor(a.r, rec.Extent.Off+rec.Extent.Len, formatName)
		c.Skip(uint64(rec.Extent.Off), "data.pkl")
		p, err := pickle.Load(c, opaque)
		warnTrailing(h, c)
		return p, err
	}
	b, err := a.content(rec, maxPickle)
	if err != nil {
		return nil, err
	}
	c := tensor.NewCursor(bytes.NewReader(b), int64(len(b)), formatName)
	p, err := pickle.Load(c, opaque)
	if e, ok := errors.AsType[*tensor.FormatError](err); ok {
		e.Msg = fmt.Sprintf("%s (at byte %d of the inflated data.pkl)", e.Msg, e.Off)
		e.Off = rec.Header
	}
	warnTrailing(h, c)
	return p, err
}

func warnTrailing(h *tensor.Header, c *tensor.Cursor) {
	if n := c.Remaining(); n > 0 {
		h.Warnings = append(h.Warnings, fmt.Sprintf("%d bytes behind the end of the checkpoint's pickles are ignored", n))
	}
}

// storage finds the record of a storage and compares the sizes: a loader that believes the pickle
// reads beyond the record (CVE-2026-24747).
func (a *archive) storage(id *storageID, big bool) (*storage, error) {
	name := "data/" + id.key
	rec := a.find(name)
	switch {
	case rec == nil:
		return nil, malformed("the archive has no record %s", clip(name))
	case id.view:
		return nil, malformed("record %s is said to be a part of another", clip(name))
	case rec.Method != zip.Store && rec.Method != zip.Deflate:
		return nil, badMethod(rec)
	case rec.Unpacked() != id.bytes:
		return nil, malformed("record %s has %d bytes, but the pickle says %d elements of %d bytes",
			clip(name), rec.Unpacked(), id.numel, id.elem.size)
	}
	st := &storage{name: name, extent: rec.Extent, unpacked: rec.Unpacked(), size: rec.Unpacked(), swap: big}
	if rec.Method == zip.Deflate {
		st.pack, st.crc = tensor.Deflate, rec.CRC32
	}
	return st, nil
}
