package elements

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"weightfs/format/tensor"
)

// ErrNoPlace: neither the directory nor the system's for temporary files can be written.
var ErrNoPlace = errors.New("no place to unpack to")

// An Unpacker keeps what packed ranges hold, each unpacked once, in files that have no name.
type Unpacker struct {
	dir   string
	limit int64

	mu     sync.Mutex
	used   int64 // bytes of all files, those being written included
	closed bool
	ranges map[packedRange]*unpacking
}

// A packedRange is all that the unpacked bytes depend on: tensors that agree in it share a file.
type packedRange struct {
	src      io.ReaderAt
	extent   tensor.Extent
	pack     tensor.Pack
	width    int64 // bytes of a varint's element
	unpacked int64
	crc      uint32
}

// An unpacking is done when its channel is closed; f and err are set before.
type unpacking struct {
	done chan struct{}
	f    *os.File
	err  error
}

// NewUnpacker makes files in dir, which together never hold more than limit bytes.
func NewUnpacker(dir string, limit int64) *Unpacker {
	return &Unpacker{dir: dir, limit: limit, ranges: map[packedRange]*unpacking{}}
}

// Close frees the files. Later reads of packed tensors fail.
func (u *Unpacker) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	var first error
	for key, it := range u.ranges {
		select {
		case <-it.done:
			if err := it.f.Close(); err != nil && first == nil {
				first = err
			}
			delete(u.ranges, key)
		default: // its reader is still at it, and closes the file itself
		}
	}
	return first
}

// file gives the unpacked bytes of a range. The first caller unpacks, those who come meanwhile wait
// for it. A failure is told to these, and the next one tries again.
func (u *Unpacker) file(key packedRange) (*os.File, error) {
	u.mu.Lock()
	if it := u.ranges[key]; it != nil {
		u.mu.Unlock()
		<-it.done
		return it.f, it.err
	}
	it, err := u.begin(key)
	u.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f, err := u.unpack(key)
	u.finish(key, it, f, err)
	return it.f, it.err
}

// begin reserves the room of a range. u.mu is held.
func (u *Unpacker) begin(key packedRange) (*unpacking, error) {
	if u.closed {
		return nil, os.ErrClosed
	}
	if key.unpacked > u.limit-u.used {
		return nil, fmt.Errorf("%w: unpacking %d bytes in %s, where %d of at most %d are in use",
			tensor.ErrTooLarge, key.unpacked, u.dir, u.used, u.limit)
	}
	u.used += key.unpacked
	it := &unpacking{done: make(chan struct{})}
	u.ranges[key] = it
	return it, nil
}

func (u *Unpacker) finish(key packedRange, it *unpacking, f *os.File, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil && u.closed {
		f.Close()
		f, err = nil, os.ErrClosed
	}
	if err != nil {
		u.used -= key.unpacked
		delete(u.ranges, key)
	}
	it.f, it.err = f, err
	close(it.done)
}

func (u *Unpacker) unpack(key packedRange) (*os.File, error) {
	f, err := u.create()
	if err != nil {
		return nil, err
	}
	if err := unpackTo(f, key); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// create makes a file in the directory, which is made at its first use. One that may not be written
// (a read-only home) is no reason to fail: the system's directory for temporary files will do.
func (u *Unpacker) create() (*os.File, error) {
	err := os.MkdirAll(u.dir, 0o700)
	if err == nil {
		var f *os.File
		if f, err = nameless(u.dir); err == nil {
			return f, nil
		}
	}
	if isFull(err) {
		return nil, err
	}
	f, tempErr := nameless(os.TempDir())
	switch {
	case isFull(tempErr):
		return nil, tempErr
	case tempErr != nil:
		return nil, fmt.Errorf("%w: %w; %w", ErrNoPlace, err, tempErr)
	}
	return f, nil
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// packed reads a range unpacked.
type packed struct {
	store *Unpacker
	key   packedRange
}

// ReadAt unpacks the range first, unless that has been done.
func (p *packed) ReadAt(b []byte, off int64) (int, error) {
	f, err := p.store.file(p.key)
	if err != nil {
		return 0, err
	}
	return f.ReadAt(b, off)
}
