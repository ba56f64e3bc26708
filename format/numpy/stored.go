package numpy

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"

	"weightfs/format/tensor"
)

// Stored lists the members of an archive that are not packed. Nothing but their CRC-32 tells whether they
// are as they were written; those that are packed are checked when they are inflated.
func Stored(r io.ReaderAt, size int64) ([]*zip.File, error) {
	z, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, zipFault(-1, tensor.ErrMalformed, "zip directory: %v", err)
	}
	var list []*zip.File
	for _, f := range z.File {
		if f.Method == zip.Store && f.UncompressedSize64 > 0 {
			list = append(list, f)
		}
	}
	return list, nil
}

// CheckStored reads a member that Stored gave, and compares its CRC-32.
func CheckStored(f *zip.File, read func(n int)) *tensor.FormatError {
	content, err := f.Open()
	if err == nil {
		_, err = io.Copy(counting(read), content)
		content.Close()
	}
	if err == nil {
		return nil
	}
	off, _ := f.DataOffset()
	msg := fmt.Sprintf("member %q: %v", f.Name, err)
	if errors.Is(err, zip.ErrChecksum) {
		msg = fmt.Sprintf("member %q is not what was written: its CRC-32 is not %08x", f.Name, f.CRC32)
	}
	return zipFault(off, tensor.ErrMalformed, "%s", msg)
}

// counting is a writer that only counts.
type counting func(n int)

func (c counting) Write(p []byte) (int, error) {
	c(len(p))
	return len(p), nil
}
