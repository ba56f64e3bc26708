package torch

import (
	"archive/zip"
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"

	"weightfs/format/tensor"
	"weightfs/format/zipfile"
)

// An archive is the records of a zip file by name. Torch looks them up without regard to case.
type archive struct {
	r       io.ReaderAt
	top     string // directory of the first record, with its slash
	records map[string]*zipfile.Entry
}

func openArchive(r io.ReaderAt, size int64) (*archive, error) {
	all, err := zipfile.Open(r, size, zipfile.Kind{Format: formatName, Entry: "record"})
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fault(-1, tensor.ErrMalformed, "the zip archive has no records")
	}
	a := &archive{r: r, records: make(map[string]*zipfile.Entry, len(all))}
	if at := strings.IndexByte(all[0].Name, '/'); at >= 0 {
		a.top = all[0].Name[:at+1]
	}
	for _, rec := range all {
		key := lower(rec.Name)
		if _, ok := a.records[key]; ok {
			return nil, rec.Fault(tensor.ErrMalformed, "is there twice, and readers disagree which one counts")
		}
		a.records[key] = rec
	}
	// Torch counts offsets from the first byte, archive/zip finds them wherever the archive begins.
	first := slices.MinFunc(all, func(x, y *zipfile.Entry) int { return cmp.Compare(x.Header, y.Header) })
	if first.Header != 0 {
		return nil, fault(0, tensor.ErrMalformed, "the first record %q begins at offset %d: the archive lies behind something else",
			first.Name, first.Header)
	}
	return a, nil
}

// find looks a record up as torch does, without regard to case; nil when there is none.
func (a *archive) find(name string) *zipfile.Entry { return a.records[lower(a.top+name)] }

// content reads a record of at most limit bytes. The checksum of a stored one is not looked at:
// torch.save can be told not to compute it.
func (a *archive) content(rec *zipfile.Entry, limit int64) ([]byte, error) {
	if rec.Unpacked() > limit {
		return nil, rec.Fault(tensor.ErrTooLarge, "of %d bytes exceeds the limit of %d", rec.Unpacked(), limit)
	}
	var stream io.Reader = io.NewSectionReader(a.r, rec.Extent.Off, rec.Extent.Len)
	switch rec.Method {
	case zip.Store:
	case zip.Deflate:
		inflater, err := rec.Open()
		if err != nil {
			return nil, rec.Fault(tensor.ErrMalformed, "cannot be inflated: %v", err)
		}
		defer inflater.Close()
		stream = inflater
	default:
		return nil, badMethod(rec)
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(stream, rec.Unpacked()+1)); err != nil {
		return nil, rec.Fault(tensor.ErrMalformed, "cannot be read: %v", err)
	}
	if int64(b.Len()) != rec.Unpacked() {
		return nil, rec.Fault(tensor.ErrMalformed, "has %d bytes instead of %d", b.Len(), rec.Unpacked())
	}
	return b.Bytes(), nil
}

func badMethod(rec *zipfile.Entry) error {
	return rec.Fault(tensor.ErrUnsupported, "has compression method %d, only stored (0) and deflated (8) are supported", rec.Method)
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
