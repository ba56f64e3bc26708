package numpy

import (
	"archive/zip"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"weightfs/format/tensor"
)

// Unchecked lists the members of an archive whose CRC-32 nobody compares when they are read: those that are
// not packed, and those whose CRC-32 is 0, which an inflater takes for none.
func Unchecked(r io.ReaderAt, size int64) ([]*zip.File, error) {
	z, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, zipFault(-1, tensor.ErrMalformed, "zip directory: %v", err)
	}
	var list []*zip.File
	for _, f := range z.File {
		if f.UncompressedSize64 > 0 && (f.Method == zip.Store || f.Method == zip.Deflate && f.CRC32 == 0) {
			list = append(list, f)
		}
	}
	return list, nil
}

// Check reads a member that Unchecked gave, and compares its CRC-32.
func Check(f *zip.File, read func(n int)) *tensor.FormatError {
	content, err := f.Open()
	if err == nil {
		sum := crc32.NewIEEE()
		_, err = io.Copy(io.MultiWriter(counting(read), sum), content)
		content.Close()
		if err == nil && sum.Sum32() != f.CRC32 {
			err = zip.ErrChecksum // archive/zip, too, takes 0 for none
		}
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
