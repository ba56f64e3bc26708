package format

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"weightfs/disk"
	"weightfs/mmap"
)

// ErrStale: the file at a shard's path is no longer the one that was parsed. Opens answer ESTALE.
var ErrStale = errors.New("the file was replaced, removed or changed after it was opened")

// ErrChanged: a shard was truncated, extended or rewritten in place. Reads answer EIO.
var ErrChanged = errors.New("the file was changed in place after it was opened")

// A Shard is one file of a checkpoint, held open from the moment it was parsed: there is no second
// open that could find another file.
type Shard struct {
	Name   string // as the checkpoint names it: relative to its directory
	Path   string // where it was opened
	Format string

	file   *os.File
	stat   os.FileInfo
	size   int64
	mtime  int64 // Unix nanoseconds
	once   sync.Once
	mapped *mmap.File // nil where the file system refuses mmap
}

// OpenShard opens a regular file for reading.
func OpenShard(name, path string) (*Shard, error) {
	f, st, err := disk.Open(path)
	if err != nil {
		return nil, err
	}
	return &Shard{Name: name, Path: path, file: f, stat: st, size: st.Size(), mtime: st.ModTime().UnixNano()}, nil
}

// Size is the file's size when it was opened.
func (s *Shard) Size() int64 { return s.size }

// Stat is the file's state when it was opened.
func (s *Shard) Stat() os.FileInfo { return s.stat }

// A ReadError is a fault of a shard's bytes, with its place.
type ReadError struct {
	Shard *Shard
	Off   int64 // in the shard
	Err   error
}

func (e *ReadError) Error() string {
	return fmt.Sprintf("%s: offset %d: %v", e.Shard.Path, e.Off, e.Err)
}

// Unwrap gives the reason, for errors.Is.
func (e *ReadError) Unwrap() error { return e.Err }

// ReadAt reads by pread, and refuses a file that was changed in place.
func (s *Shard) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.file.ReadAt(p, off)
	if cerr := s.Intact(off); cerr != nil {
		return 0, cerr
	}
	at := off + int64(n)
	if err == io.EOF && at < s.size {
		err = io.ErrUnexpectedEOF
	}
	if path, ok := errors.AsType[*os.PathError](err); ok {
		err = path.Err // the path is said already
	}
	if err != nil && err != io.EOF {
		err = &ReadError{s, at, err}
	}
	return n, err
}

// Slice gives n bytes at off of the map, nil where the file cannot be mapped. Go code must not
// touch them: a file cut short would end the process (SIGBUS). They are for the kernel to copy.
func (s *Shard) Slice(off, n int64) []byte {
	s.once.Do(func() { s.mapped, _ = mmap.Map(s.file, s.stat.Size()) })
	if s.mapped == nil {
		return nil
	}
	return s.mapped.Slice(off, n)
}

// Fresh compares what the path leads to now with what was parsed: ErrStale when it is another file,
// none, or a changed one.
func (s *Shard) Fresh() error {
	st, err := os.Stat(s.Path)
	if err != nil {
		return fmt.Errorf("%s: %w (%v)", s.Path, ErrStale, err)
	}
	if !os.SameFile(st, s.stat) || st.Size() != s.stat.Size() || !st.ModTime().Equal(s.stat.ModTime()) {
		return fmt.Errorf("%s: %w", s.Path, ErrStale)
	}
	return nil
}

// Close unmaps and closes the file; nobody may read any more.
func (s *Shard) Close() error {
	s.once.Do(func() {})
	var err error
	if s.mapped != nil {
		err = s.mapped.Close()
	}
	return errors.Join(err, s.file.Close())
}
