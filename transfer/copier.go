// Package transfer copies files of a tree to a disk. A copy is there whole or not at all; what is
// unfinished can be kept and gone on with.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"weightfs/format"
)

// Options say how files are copied.
type Options struct {
	Resume  bool   // keep what is written of an unfinished file, go on with it, leave out what is there
	Verify  bool   // read every copy back and compare it with what was read
	Version string // of the program: what it makes on read may differ from what an earlier one made
	Meter   Meter  // may be nil
}

// A Meter shows how far the copying is. Every byte of a file is done or spared once, and with
// Options.Verify done once more. It is called from several goroutines.
type Meter interface {
	Done(n int64)   // bytes that were copied, or read back
	Spared(n int64) // bytes that were there already
}

type noMeter struct{}

func (noMeter) Done(int64)   {}
func (noMeter) Spared(int64) {}

// A Copier copies files, several at once.
type Copier struct {
	opt Options

	mu    sync.Mutex
	loose []string        // small copies that were not flushed
	dirs  map[string]bool // that hold new names
}

// New makes a Copier. Finish ends its work.
func New(opt Options) *Copier {
	if opt.Meter == nil {
		opt.Meter = noMeter{}
	}
	return &Copier{opt: opt, dirs: map[string]bool{}}
}

// An Outcome is what became of a file that was to be copied.
type Outcome struct {
	Bytes   int64
	Present bool // the copy was there already
}

// A WriteError is trouble with the copy, not with what is copied.
type WriteError struct {
	Path string
	Kept int64 // bytes of the unfinished copy that were kept
	Err  error
}

// Error is one line.
func (e *WriteError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *WriteError) Unwrap() error { return e.Err }

// Full tells whether the disk, or what the user may take of it, is full.
func (e *WriteError) Full() bool {
	return errors.Is(e.Err, syscall.ENOSPC) || errors.Is(e.Err, syscall.EDQUOT)
}

// A MismatchError is a copy that reads back other bytes than were read.
type MismatchError struct {
	Path     string
	From, To int64 // the bytes with the difference
}

// Error is one line.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s: the copy differs from what was read, between bytes %d and %d", e.Path, e.From, e.To)
}

// File copies f to the path to, in a directory that exists, with the mode that the umask leaves of
// rw-r--r-- and the time of f. What was at the path is replaced at the very end.
func (c *Copier) File(ctx context.Context, f format.File, to string) (Outcome, error) {
	j, done, err := c.job(ctx, f, to)
	if err != nil {
		return Outcome{}, err
	}
	defer done()
	if c.opt.Resume && j.present() {
		c.opt.Meter.Spared(j.size)
		return Outcome{j.size, true}, j.check()
	}
	return Outcome{j.size, false}, j.run()
}

// job opens f. What it holds is given back by done.
func (c *Copier) job(ctx context.Context, f format.File, to string) (j *job, done func(), err error) {
	content, err := f.Open()
	if err != nil {
		return nil, nil, err
	}
	done = func() {}
	if closer, ok := content.(io.Closer); ok {
		done = func() { closer.Close() }
	}
	_, tensor := f.(format.TensorFile)
	return &job{Copier: c, ctx: ctx, content: content, size: content.Size(), mtime: f.Stat().ModTime, tensor: tensor, to: to}, done, nil
}

// Few files are flushed one by one as they are finished or at the end. Many small ones are flushed at
// the end with all else on the file system: one by one that takes ten times as long as to write them.
const (
	smallFile = 1 << 20
	fewFiles  = 64
)

// finished notes a new copy.
func (c *Copier) finished(path string, flushed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !flushed {
		c.loose = append(c.loose, path)
	}
	c.dirs[filepath.Dir(path)] = true
}

// Finish brings to the disk what is not there yet.
func (c *Copier) Finish() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.loose)+len(c.dirs) > fewFiles {
		for dir := range c.dirs {
			if err := syncFileSystem(dir); !errors.Is(err, errors.ErrUnsupported) {
				return c.failed(dir, err)
			}
			break
		}
	}
	for _, path := range c.loose {
		if err := syncPath(path); err != nil {
			return c.failed(path, err)
		}
	}
	for dir := range c.dirs {
		// Some file systems have no fsync for directories; the copies themselves are safe.
		if err := syncPath(dir); err != nil && !errors.Is(err, syscall.EINVAL) {
			return c.failed(dir, err)
		}
	}
	return nil
}

// failed says that it is the copy at a path that has the trouble; nil for none.
func (c *Copier) failed(path string, err error) error {
	if err == nil {
		return nil
	}
	return &WriteError{Path: path, Err: cause(err)}
}

// cause is an error without the path of an unfinished file, which would tell a user nothing.
func cause(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		return e.Err
	}
	return err
}
