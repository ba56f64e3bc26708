package zipfile

import (
	"archive/zip"
	"errors"
	"io"
	"strings"

	"weightfs/format/tensor"
)

// Directory reads the directory of a zip file of size bytes, and none of the local headers.
func Directory(r io.ReaderAt, size int64, kind Kind) ([]*zip.File, error) {
	files, _, err := directory(r, size, kind)
	return files, err
}

// directory reads the one directory that all readers see, and tells where it begins.
func directory(r io.ReaderAt, size int64, kind Kind) ([]*zip.File, int64, error) {
	e, err := readEnd(r, size, kind)
	if err != nil {
		return nil, 0, err
	}
	if err := e.find(r, kind); err != nil {
		return nil, 0, err
	}
	z, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, 0, kind.fault(e.at, tensor.ErrMalformed, "the zip archive's central directory is damaged, or its end record, which counts %d entries: %v", e.count, err)
	}
	if err := e.compare(z.File, kind); err != nil {
		return nil, 0, err
	}
	for _, f := range z.File {
		if strings.IndexByte(f.Name, 0) >= 0 {
			return nil, 0, kind.fault(e.start(), tensor.ErrMalformed, "the name of %s %q has a zero byte, at which other readers end it", kind.Entry, f.Name)
		}
	}
	return z.File, e.start(), nil
}
