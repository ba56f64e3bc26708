// Package detect tells what a file is by its content. Names lie: a .bin is a zip archive, a row of
// pickles, ggml or raw data, and a .pt may be safetensors.
package detect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"weightfs/format/onnx"
	"weightfs/format/tensor"
)

// A Kind is a format that weightfs reads, or means to: where Detect gives one, its parser has the
// last word.
type Kind uint8

// The kinds.
const (
	SafeTensors Kind = iota + 1
	GGUF
	TorchZip
	TorchLegacy
	NPY
	NPZ
	ONNX
)

const headSize = 4 << 10

// Detect recognises a file of size bytes. Whatever is no checkpoint that a parser is there for is a
// *tensor.FormatError: of reason ErrUnsupported if it is known what it is, else ErrMalformed.
//
// What stands at offset 0 decides first. Only then come signatures that lie further inside, which
// the tensors of another format might hold by chance.
func Detect(r io.ReaderAt, size int64) (Kind, error) {
	if size <= 0 {
		return 0, known{what: "an empty file", hint: fetchIt, broken: true}.fault()
	}
	f := &file{r: r, size: size}
	head, err := f.read(0, headSize)
	if err != nil {
		return 0, err
	}
	f.head = head
	if kind := f.magic(); kind != 0 {
		return kind, nil
	}
	if f.has("PK\x03\x04") || f.has("PK\x05\x06") {
		return f.zip()
	}
	for _, recognise := range []func(*file) *known{(*file).foreign, (*file).pickle, (*file).hdf5, (*file).text} {
		if k := recognise(f); k != nil {
			return 0, k.fault()
		}
	}
	switch {
	case f.safetensors():
		return SafeTensors, nil
	case onnx.Detect(r, size):
		return ONNX, nil
	}
	if k := f.guess(); k != nil {
		return 0, k.fault()
	}
	return 0, f.unknown()
}

// A file is what is being recognised.
type file struct {
	r    io.ReaderAt
	size int64
	head []byte // the first 4 KiB
}

// read gives up to n bytes from off: fewer only where the file ends.
func (f *file) read(off int64, n int) ([]byte, error) {
	b := make([]byte, min(int64(n), max(f.size-off, 0)))
	got, err := f.r.ReadAt(b, off)
	if got == len(b) {
		return b, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = tensor.ErrTruncated
	}
	return nil, &tensor.FormatError{Off: off + int64(got), Msg: fmt.Sprintf("reading %d bytes: %v", len(b), err), Err: err}
}

// has tells whether the file begins with prefix.
func (f *file) has(prefix string) bool { return f.hasAt(0, prefix) }

// hasAt is has for an offset inside the head.
func (f *file) hasAt(off int, magic string) bool {
	return off+len(magic) <= len(f.head) && string(f.head[off:off+len(magic)]) == magic
}

// magic recognises what the first bytes leave no doubt about.
func (f *file) magic() Kind {
	switch {
	case f.has("GGUF"), f.has("FUGG"): // reversed, it is the parser's to refuse
		return GGUF
	case f.has("\x93NUMPY"):
		return NPY
	case f.torchLegacy():
		return TorchLegacy
	case f.length() <= maxHeader && f.hasAt(8, "{") && (f.size == 9 || strings.IndexByte("\"} \t\r\n", f.head[9]) >= 0):
		return SafeTensors // the header may be cut off: the parser says so
	}
	return 0
}

const maxHeader = 100_000_000 // of the safetensors reference

// length is the first eight bytes as the length of a safetensors header.
func (f *file) length() uint64 {
	if len(f.head) < 8 {
		return 1<<64 - 1
	}
	return binary.LittleEndian.Uint64(f.head)
}

// safetensors recognises faulty headers too, so that the parser can say what is wrong with them: a
// length over the limit in front of an object, a file cut off behind the length, a header that
// begins with white space, a byte order mark or another JSON value.
func (f *file) safetensors() bool {
	n := f.length()
	switch {
	case n > maxHeader:
		return f.hasAt(8, "{\"") || f.hasAt(8, "{}")
	case n < 2:
		return false
	case len(f.head) == 8:
		return true
	}
	return 8+n <= uint64(f.size) && (strings.IndexByte("{ \t\r\n[\"", f.head[8]) >= 0 || f.hasAt(8, "\ufeff"))
}

// torchLegacy recognises the first of the five pickles, torch's magic number, in any protocol.
func (f *file) torchLegacy() bool {
	const magic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"
	return f.has("\x80") && (f.hasAt(2, magic) || f.hasAt(2, "\x95") && f.hasAt(11, magic)) ||
		f.has("L119547037146038801333356L\n.")
}

// unknown is the last resort: what the file begins with.
func (f *file) unknown() error {
	if f.size < 8 {
		return &tensor.FormatError{Off: 0, Err: tensor.ErrTruncated,
			Msg: fmt.Sprintf("truncated: a file of %d bytes is too small for any format: the header of safetensors alone takes 8", f.size)}
	}
	return &tensor.FormatError{Off: 0, Err: tensor.ErrMalformed,
		Msg: fmt.Sprintf("unknown format: the file begins with %q, which is no magic number, nor is %d the length of a safetensors header",
			f.head[:min(len(f.head), 16)], f.length()),
		Hint: "weightfs reads safetensors, GGUF, PyTorch, NumPy and ONNX files"}
}
