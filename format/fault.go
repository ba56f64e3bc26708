package format

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"weightfs/format/tensor"
)

// A TensorError is an error in reading a tensor.
type TensorError struct {
	Shard  *Shard // that holds the tensor
	Tensor string
	Err    error
}

// Error names the file too, unless the error does itself.
func (e *TensorError) Error() string {
	text := fmt.Sprintf("tensor %q: %v", e.Tensor, e.Err)
	if _, ok := errors.AsType[*ReadError](e.Err); ok {
		return text
	}
	return e.Shard.Path + ": " + text
}

// Unwrap gives the reason, for errors.Is.
func (e *TensorError) Unwrap() error { return e.Err }

// Fault says of an error in reading a tensor which one it was, unless the error does itself; nil for none.
func (c *Checkpoint) Fault(i int, err error) error {
	if _, ok := errors.AsType[*TensorError](err); ok || err == nil {
		return err
	}
	return &TensorError{c.Shards[c.index.Records[i].File], c.TensorName(i), err}
}

// A faulting reader makes elements of a tensor, and says of which when it cannot.
type faulting struct {
	io.ReaderAt
	c      *Checkpoint
	tensor uint32
}

// ReadAt implements io.ReaderAt.
func (f faulting) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.ReaderAt.ReadAt(p, off)
	if err != nil && err != io.EOF {
		err = f.c.Fault(int(f.tensor), err)
	}
	return n, err
}

// inFile names the file of a fault, unless it does itself; nil for none.
func inFile(err error, path string) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*ReadError](err); ok {
		return err
	}
	if fault, ok := errors.AsType[*tensor.FormatError](err); ok {
		fault.File = cmp.Or(fault.File, path)
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}
