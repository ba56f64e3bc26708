package numpy

import (
	"archive/zip"
	"strings"

	"weightfs/format/tensor"
	"weightfs/format/zipfile"
)

// A member is a file of an archive.
type member struct{ *zipfile.Entry }

// named tells whether np.load strips the member's extension.
func (m *member) named() bool { return strings.HasSuffix(m.Name, ".npy") }

// fault puts a fault of a member's content into its place in the archive.
func (m *member) fault(e *tensor.FormatError) *tensor.FormatError {
	e.Format, e.Tensor = "npz", strings.TrimSuffix(m.Name, ".npy")
	if m.Method == zip.Store {
		e.Off += m.Extent.Off
	} else {
		e.Off = m.Extent.Off
	}
	return e
}

func zipFault(off int64, reason error, format string, a ...any) *tensor.FormatError {
	e := fault(off, reason, format, a...)
	e.Format = "npz"
	return e
}
