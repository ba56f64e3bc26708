// Package mmap maps files for the kernel to copy from, and nothing else.
//
// The bytes of a map must never be read by Go code: when the file is cut short, touching a page past
// its end is SIGBUS, which ends the process, while a system call that copies from it gets EFAULT.
package mmap

import (
	"fmt"
	"os"
)

// A File is a read-only map of a whole file.
type File struct{ data []byte }

// Map maps size bytes of f, the descriptor that was parsed, so that there is no second open. An empty
// file gives an empty map: mmap(2) refuses length 0. Where there is no mmap(2) the error is
// errors.ErrUnsupported.
func Map(f *os.File, size int64) (*File, error) {
	if size == 0 {
		return &File{}, nil
	}
	if size < 0 || int64(int(size)) != size {
		return nil, fmt.Errorf("mmap %s: size %d", f.Name(), size)
	}
	data, err := mapShared(f, int(size))
	if err != nil {
		return nil, fmt.Errorf("mmap %s: %w", f.Name(), err)
	}
	return &File{data: data}, nil
}

// Slice is n bytes at off, without touching them. Both must lie inside the map.
func (m *File) Slice(off, n int64) []byte { return m.data[off : off+n : off+n] }

// An Advice is what the kernel is told of a range's use.
type Advice int

// WillNeed has the range read from disk now; DontNeed takes it out of this process, not out of the
// kernel's cache.
const (
	WillNeed Advice = iota
	DontNeed
)

// Advise tells the kernel of the whole pages in which n bytes at off lie. Both must lie inside the
// map.
func (m *File) Advise(off, n int64, a Advice) error {
	if n == 0 {
		return nil
	}
	page := int64(os.Getpagesize())
	begin := off - off%page // madvise(2) wants a page's start
	return os.NewSyscallError("madvise", advise(m.Slice(begin, off+n-begin), a))
}

// Close unmaps; no slice may be in use any more.
func (m *File) Close() error {
	if m.data == nil {
		return nil
	}
	data := m.data
	m.data = nil
	return unmap(data)
}
