package zipfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weightfs/format/tensor"
)

var kind = Kind{Format: "zipped", Entry: "thing"}

func open(file []byte) ([]*Entry, error) { return Open(bytes.NewReader(file), int64(len(file)), kind) }

// archive writes stored entries, each named and filled with its name. change may alter what the directory and
// the local header say, but not the content.
func archive(t testing.TB, change func(*zip.FileHeader), names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		h := &zip.FileHeader{Name: name, CompressedSize64: uint64(len(name)), UncompressedSize64: uint64(len(name))}
		if change != nil {
			change(h)
		}
		content, err := w.CreateRaw(h)
		if err == nil {
			_, err = content.Write([]byte(name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// patched sets a byte of the first local header.
func patched(file []byte, at int, value byte) []byte {
	file[at] = value
	return file
}

func TestOpenFindsTheContent(t *testing.T) {
	var names []string
	for i := range 300 { // more than one window
		names = append(names, fmt.Sprintf("../some/%03d", i))
	}
	file := append([]byte("in front"), archive(t, nil, names...)...)
	entries, err := open(file)
	if err != nil || len(entries) != len(names) {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for i, e := range entries {
		content := file[e.Extent.Off:][:e.Extent.Len]
		if e.Name != names[i] || string(content) != names[i] || e.Unpacked() != e.Extent.Len {
			t.Errorf("entry %d is %s, and holds %q", i, e.Name, content)
		}
		if !bytes.HasPrefix(file[e.Header:], []byte("PK\x03\x04")) {
			t.Errorf("no local header of %s at %d", e.Name, e.Header)
		}
	}
	if entries, err := open(archive(t, nil)); err != nil || len(entries) != 0 {
		t.Errorf("of none %v, %v", entries, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	set := func(change func(*zip.FileHeader)) []byte { return archive(t, change, "abc") }
	plain := func() []byte { return archive(t, nil, "abc") }
	inside := archive(t, func(h *zip.FileHeader) {
		if h.Name == "abc" {
			h.CompressedSize64, h.UncompressedSize64 = 20, 20
		}
	}, "abc", "def")
	for _, test := range []struct {
		name   string
		file   []byte
		reason error
		words  string
	}{
		{"encrypted", set(func(h *zip.FileHeader) { h.Flags |= 1 }), tensor.ErrUnsupported, `thing "abc" is encrypted`},
		{"strongly encrypted", set(func(h *zip.FileHeader) { h.Flags |= 1 << 6 }), tensor.ErrUnsupported, "encrypted"},
		{"masked", set(func(h *zip.FileHeader) { h.Flags |= 1 << 13 }), tensor.ErrUnsupported, "encrypted"},
		{"encrypted by the local header", patched(plain(), 6, 1), tensor.ErrUnsupported, "encrypted"},
		{"another name", patched(plain(), localHeader, 'x'), tensor.ErrMalformed, `another name in its local header: "xbc"`},
		{"a longer name", patched(plain(), 26, 4), tensor.ErrMalformed, `another name in its local header: "abc"`},
		{"a shorter name", patched(plain(), 26, 2), tensor.ErrMalformed, `another name in its local header: "ab"`},
		{"another method", patched(plain(), 8, 8), tensor.ErrMalformed, "method 0, but 8"},
		{"another size", patched(plain(), 18, 2), tensor.ErrMalformed, "3 bytes, but 2 by its local header"},
		{"two sizes", set(func(h *zip.FileHeader) { h.UncompressedSize64 = 4 }), tensor.ErrMalformed, "two sizes: 3 and 4"},
		{"more than deflate can hold", set(func(h *zip.FileHeader) { h.Method, h.UncompressedSize64 = zip.Deflate, 4*maxRatio }), tensor.ErrMalformed, "claims 4128 bytes"},
		{"more than 63 bits", set(func(h *zip.FileHeader) { h.Method, h.UncompressedSize64 = 93, 1<<63 }), tensor.ErrMalformed, "claims"},
		{"beyond the file", set(func(h *zip.FileHeader) { h.CompressedSize64, h.UncompressedSize64 = 1<<40, 1<<40 }), tensor.ErrTruncated, "is truncated"},
		{"one inside another", inside, tensor.ErrMalformed, `thing "def" begins inside thing "abc", which ends at 53`},
		{"no local header", patched(plain(), 0, 'x'), tensor.ErrMalformed, "has no local header"},
		{"cut", plain()[:40], tensor.ErrTruncated, "truncated: the zip archive of 40 bytes has no central directory"},
		{"cut in the end record", plain()[:len(plain())-1], tensor.ErrTruncated, "no central directory"},
		{"damaged", bytes.Replace(plain(), []byte("PK\x01\x02"), []byte("PK\x01\x09"), 1), tensor.ErrMalformed, "central directory is damaged"},
	} {
		entries, err := open(test.file)
		fault, ok := errors.AsType[*tensor.FormatError](err)
		if entries != nil || !ok || fault.Format != "zipped" || !errors.Is(err, test.reason) || !strings.Contains(fault.Msg, test.words) {
			t.Errorf("%s: %d entries, %v; want %v, %q", test.name, len(entries), err, test.reason, test.words)
		}
	}
}

// A deferred size stands behind the content, and one of 64 bits elsewhere: the local header has no say then.
func TestOpenLetsLocalSizesBeElsewhere(t *testing.T) {
	for _, local := range [][]byte{{0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}} {
		file := archive(t, nil, "abc")
		copy(file[18:], local)
		if _, err := open(file); err != nil {
			t.Errorf("%x: %v", local, err)
		}
	}
	file := archive(t, func(h *zip.FileHeader) { h.Flags |= flagDeferred }, "abc")
	file[18] = 2
	if _, err := open(file); err != nil {
		t.Error(err)
	}
}

// An ambiguous archive is one in which readers of zip files see different directories, or names.
func TestOpenRefusesWhatOtherReadersSeeOtherwise(t *testing.T) {
	plain, two := archive(t, nil, "abc"), archive(t, nil, "abc", "def")
	size := len(plain) - endLength - (localHeader + 6) // of one directory
	body, older := two[:len(two)-endLength-2*size], two[len(two)-endLength-2*size:][:size]
	newer := two[len(two)-endLength-size : len(two)-endLength]
	counted := func(file []byte, count byte) []byte {
		file = bytes.Clone(file)
		file[len(file)-endLength+10] = count
		return file
	}
	for name, test := range map[string]struct {
		file  []byte
		words string
	}{
		"another directory by zip64": {
			slices.Concat(body, older, newer, large(len(body)+2*size, 1, size, len(body)+size), small(1, size, len(body))), "end records disagree: 1 entries"},
		"another offset than zip64": {
			slices.Concat(body, older, newer, large(len(body)+2*size, 2, 2*size, len(body)), small(2, 2*size, len(body)+1)), "end records disagree"},
		"a locator of elsewhere": {
			slices.Concat(body, older, newer, large(len(body), 2, 2*size, len(body)), small(2, 2*size, len(body))), "zip64 end record is not there"},
		"an older directory named": {
			slices.Concat(body, older, newer, small(1, size, len(body))), "does not end where the record begins"},
		"behind the end record":  {slices.Concat(body, older, newer, small(2, 2*size, len(body)+1)), "does not end where its end record begins"},
		"bytes after it":         {slices.Concat(body, older, newer, []byte("gap"), small(2, 2*size, len(body))), "does not end where the end"},
		"fewer by its length":    {slices.Concat(body, older, newer, small(2, size, len(body)+size)), "is damaged, or its end record, which counts 2"},
		"fewer counted":          {counted(two, 1), "is damaged, or its end record, which counts 1 entries"},
		"more counted":           {counted(two, 3), "is damaged, or its end record, which counts 3 entries"},
		"65536 more counted":     {slices.Concat(body, older, newer, large(len(body)+2*size, 1<<16+2, 2*size, len(body)), small(1<<16-1, 2*size, len(body))), "has 65538 entries"},
		"a zero byte in a name":  {archive(t, nil, "abc\x00d"), `thing "abc\x00d" has a zero byte`},
		"inside the directory":   {archive(t, func(h *zip.FileHeader) { h.CompressedSize64, h.UncompressedSize64 = 10, 10 }, "abc"), "ends at 43, inside the central directory, which begins at 36"},
		"inside the end records": {archive(t, func(h *zip.FileHeader) { h.CompressedSize64, h.UncompressedSize64 = 70, 70 }, "abc"), "inside the central directory"},
	} {
		entries, err := open(test.file)
		if entries != nil || !errors.Is(err, tensor.ErrMalformed) || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: %d entries, %v; want %q", name, len(entries), err, test.words)
		}
	}
}

// torch.save writes both records whatever their numbers are, and NumPy has what is too large in one alone.
func TestOpenTakesBothEndRecords(t *testing.T) {
	two := archive(t, nil, "abc", "def")
	at := len(two) - endLength
	start := int(binary.LittleEndian.Uint32(two[at+16:]))
	for name, record := range map[string][]byte{
		"equal":    small(2, at-start, start),
		"left out": small(1<<16-1, 1<<32-1, 1<<32-1),
		"in part":  small(2, at-start, 1<<32-1),
		"comment":  append(small(2, at-start, start)[:endLength-2], "\x03\x00abc"...),
	} {
		if entries, err := open(slices.Concat(two[:at], large(at, 2, at-start, start), record)); err != nil || len(entries) != 2 {
			t.Errorf("%s: %d entries, %v", name, len(entries), err)
		}
	}
}

// small is an end record, and large the one for large files with its locator, written at an offset.
func small(count, size, offset int) []byte {
	b := append([]byte(endMark), 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(count))
	b = binary.LittleEndian.AppendUint16(b, uint16(count))
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	b = binary.LittleEndian.AppendUint32(b, uint32(offset))
	return append(b, 0, 0)
}

func large(at, count, size, offset int) []byte {
	b := append([]byte(endMark64), 44, 0, 0, 0, 0, 0, 0, 0, 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for _, n := range []int{count, count, size, offset} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	b = append(b, locatorMark+"\x00\x00\x00\x00"...)
	b = binary.LittleEndian.AppendUint64(b, uint64(at))
	return append(b, 1, 0, 0, 0)
}
