package torch

import (
	"fmt"

	"weightfs/format/tensor"
)

// fault is a fault of the file; off is -1 where no one place is at fault.
func fault(off int64, reason error, format string, a ...any) *tensor.FormatError {
	return &tensor.FormatError{Format: formatName, Off: off, Err: reason, Msg: fmt.Sprintf(format, a...)}
}

// unsupported is a file of a kind that is known and not read; hint is the way out, if there is one.
func unsupported(what, hint string) *tensor.FormatError {
	e := fault(-1, tensor.ErrUnsupported, "%s is not supported", what)
	e.Hint = hint
	return e
}

// A flaw is what is wrong with a value of the pickle; the walk adds which tensor's and where.
type flaw struct {
	msg    string
	reason error
}

// Error is the message alone.
func (f *flaw) Error() string { return f.msg }

// Unwrap gives the reason.
func (f *flaw) Unwrap() error { return f.reason }

// malformed is a flaw that nothing well-formed has.
func malformed(format string, a ...any) error {
	return &flaw{msg: fmt.Sprintf(format, a...), reason: tensor.ErrMalformed}
}

// unsafe is a flaw by which reading on would exceed a bound.
func unsafe(format string, a ...any) error {
	return &flaw{msg: fmt.Sprintf(format, a...), reason: tensor.ErrUnsafe}
}

// An unshowable tensor is well-formed, but weightfs has no way to show it.
type unshowable struct{ why string }

// Error is the reason.
func (u *unshowable) Error() string { return u.why }

// clip keeps a name from the file short enough for a message.
func clip(s string) string {
	const limit = 400
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}
