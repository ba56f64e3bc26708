package format

import (
	"cmp"
	"errors"
	"fmt"

	"weightfs/format/tensor"
)

// Fault adds to an error in reading a tensor which one it was, and the file unless it names that; nil for
// no error.
func (c *Checkpoint) Fault(i int, err error) error {
	if err == nil {
		return nil
	}
	return inFile(fmt.Errorf("tensor %q: %w", c.TensorName(i), err), c.Shards[c.index.Records[i].File].Path)
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
