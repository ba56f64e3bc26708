package numpy

import (
	"archive/zip"
	"strings"
	"unicode/utf8"

	"weightfs/format/tensor"
	"weightfs/format/zipfile"
)

// A member is a file of an archive.
type member struct {
	*zipfile.Entry
	name string // as np.load reads it
}

const (
	flagUTF8 = 1 << 11
	// codePage is what the bytes from 0x80 on mean in code page 437.
	codePage = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0"
)

var codePageRunes = []rune(codePage)

// newMember reads the name of an entry: in code page 437, unless it is said to be UTF-8.
func newMember(e *zipfile.Entry) *member {
	if e.Flags&flagUTF8 != 0 {
		return &member{e, e.Name}
	}
	var name strings.Builder
	for _, c := range []byte(e.Name) {
		if c < utf8.RuneSelf {
			name.WriteByte(c)
		} else {
			name.WriteRune(codePageRunes[c-utf8.RuneSelf])
		}
	}
	return &member{e, name.String()}
}

// array is the name of the array that the member holds.
func (m *member) array() string { return strings.TrimSuffix(m.name, ".npy") }

// named tells whether np.load strips the member's extension.
func (m *member) named() bool { return strings.HasSuffix(m.name, ".npy") }

// fault puts a fault of a member's content into its place in the archive.
func (m *member) fault(e *tensor.FormatError) *tensor.FormatError {
	e.Format, e.Tensor = "npz", m.array()
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
