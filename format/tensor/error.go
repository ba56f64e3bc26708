package tensor

import (
	"errors"
	"fmt"
	"strings"
)

// The reasons under a FormatError. ErrUnsupported: weightfs knows what it is and cannot read it.
// ErrUnsafe: reading on would leave the checkpoint or exceed a bound.
var (
	ErrMalformed   = errors.New("malformed")
	ErrTruncated   = errors.New("truncated")
	ErrTooLarge    = errors.New("too large")
	ErrUnsupported = errors.New("unsupported")
	ErrUnsafe      = errors.New("unsafe")
)

// A FormatError is a fault in a container: what, where by offset, and where by name.
type FormatError struct {
	Format string // `safetensors`, `gguf`, …
	File   string // the path, added by the layer that opened it
	Off    int64  // absolute byte offset in the file; -1 where no one place is at fault
	Tensor string // the tensor's name; empty where the fault is of the whole file
	Msg    string // lower case, with the offending numbers and the limit
	Hint   string // the way out, where there is one
	Err    error  // one of the reasons of this package
}

// Error is one line: file, format, offset, tensor, reason, hint.
func (e *FormatError) Error() string {
	var b strings.Builder
	if e.File != "" {
		fmt.Fprintf(&b, "%s: ", e.File)
	}
	if e.Format != "" {
		fmt.Fprintf(&b, "%s: ", e.Format)
	}
	if e.Off >= 0 {
		fmt.Fprintf(&b, "offset %d: ", e.Off)
	}
	if e.Tensor != "" {
		fmt.Fprintf(&b, "tensor %q: ", e.Tensor)
	}
	b.WriteString(e.Msg)
	switch {
	case e.Hint != "":
		fmt.Fprintf(&b, " (%s)", e.Hint)
	case errors.Is(e.Err, ErrTruncated):
		b.WriteString(" (download the file again)")
	}
	return b.String()
}

// Unwrap gives the reason, for errors.Is.
func (e *FormatError) Unwrap() error { return e.Err }
