package gguf

import (
	"errors"
	"fmt"

	"weightfs/format/tensor"
)

// fault is a fault of a tensor, or of the file where it has no name.
func fault(off int64, name string, reason error, msg string, a ...any) *tensor.FormatError {
	return &tensor.FormatError{Format: format, Off: off, Tensor: name, Msg: fmt.Sprintf(msg, a...), Err: reason}
}

// inTensor adds the tensor's name to a fault inside its info.
func inTensor(err error, name string) error {
	if fault, ok := errors.AsType[*tensor.FormatError](err); ok {
		fault.Tensor = name
	}
	return err
}

// inKey adds the key's name to a fault inside its value.
func inKey(err error, key string) error {
	if fault, ok := errors.AsType[*tensor.FormatError](err); ok && key != "" {
		fault.Msg = fmt.Sprintf("key %q: %s", key, fault.Msg)
	}
	return err
}
