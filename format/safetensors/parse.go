// Package safetensors reads the header of a safetensors file: where each tensor's bytes lie.
//
// It accepts what the reference library accepts and refuses what that refuses, but for three things.
// Two tensors of one name are refused even where the reference silently keeps the last. An element
// type that the reference does not know (it refuses the file) leaves that tensor out with a warning.
// A dtype written as an object ({"F32": null}, a quirk of serde) and more than 1024 dimensions are
// refused. Holes and bytes after the last tensor, which the reference refuses, are tolerable faults.
package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
	"unsafe"

	"weightfs/format/tensor"
)

// Format is the name of the format in headers and errors.
const Format = "safetensors"

const maxHeader = 100_000_000 // the reference's limit, inclusive

// Parse reads the header of a safetensors file of size bytes and checks every range against it.
// Names stay parts of the one string that holds the header.
func Parse(r io.ReaderAt, size int64) (*tensor.Header, error) {
	text, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	p := newParser(text, size)
	if !p.header() || !p.unique() || !p.cover() {
		return nil, p.err
	}
	return p.out, nil
}

// readHeader gives the JSON text. Its length is compared with the limit before any arithmetic: it
// may be 2^64-1, and 8 more than that wraps.
func readHeader(r io.ReaderAt, size int64) (string, error) {
	if size == 0 {
		return "", fault(-1, tensor.ErrTruncated, "empty file")
	}
	if size < lengthSize {
		return "", fault(0, tensor.ErrTruncated, "header too small: the file has %d bytes, the length of the header alone takes 8", size)
	}
	var length [lengthSize]byte
	if err := readFull(r, length[:], 0); err != nil {
		return "", err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return "", fault(0, tensor.ErrTooLarge, "header too large: its length is %d, the limit is %d bytes", n, maxHeader)
	}
	if int64(n) > size-lengthSize {
		return "", fault(0, tensor.ErrTruncated, "truncated: the header length is %d, so the file has more than %d bytes, but this one has %d: at least %d are missing",
			n, n+lengthSize, size, int64(n)+lengthSize-size)
	}
	text := make([]byte, n)
	if err := readFull(r, text, lengthSize); err != nil {
		return "", err
	}
	return validText(text)
}

// validText checks the encoding and gives the bytes as a string, of which names are parts: text must
// not change any more. Copying it would take as long as reading it did.
func validText(text []byte) (string, error) {
	if !utf8.Valid(text) {
		at := 0
		for at < len(text) {
			r, n := utf8.DecodeRune(text[at:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
		return "", fault(lengthSize+int64(at), tensor.ErrMalformed, "invalid UTF-8 in header: byte %#02x", text[at])
	}
	return unsafe.String(unsafe.SliceData(text), len(text)), nil
}

func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = tensor.ErrTruncated
	}
	return fault(off+int64(n), err, "reading %d bytes of the header: %v", len(p), err)
}

func fault(off int64, reason error, format string, a ...any) *tensor.FormatError {
	return &tensor.FormatError{Format: Format, Off: off, Msg: fmt.Sprintf(format, a...), Err: reason}
}
