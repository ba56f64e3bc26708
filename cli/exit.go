package cli

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"syscall"

	"weightfs/format/set"
	"weightfs/format/tensor"
	"weightfs/store"
)

// The exit codes. Each has one meaning for ever; a number once given is never used again.
const (
	exitDone        = 0
	exitNo          = 1  // the answer is no: diff differs, verify found faults
	exitTrouble     = 2  // trouble that is not listed here
	exitUsage       = 10 // wrong usage
	exitNoSource    = 11 // the source is not there, not readable, or not in the cache
	exitFormat      = 12 // the format is unknown or malformed, or there is no checkpoint
	exitIncomplete  = 13 // a shard or blob is missing
	exitNoTensor    = 14 // no such tensor
	exitMountPoint  = 15 // the mount point is unfit
	exitStale       = 16 // another mount is there, of whatever kind
	exitNoFUSE      = 17 // no FUSE here
	exitRefused     = 18 // the mount was refused
	exitNotReady    = 19 // not ready in time
	exitBusy        = 20 // busy
	exitInterrupted = 21 // interrupted
)

// An exitError is an error with the exit code that tells its kind.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func failf(code int, format string, a ...any) error {
	return &exitError{code, fmt.Errorf(format, a...)}
}

func usageError(format string, a ...any) error { return failf(exitUsage, format, a...) }

// noAnswer is the answer "no" of a verb that has printed all there is to say.
type noAnswer struct{}

func (noAnswer) Error() string { return "no" }

// reported is a failure that has been printed already.
type reported struct{ code int }

func (r reported) Error() string { return fmt.Sprintf("exit code %d", r.code) }

// codeOf finds the exit code of an error.
func codeOf(err error) int {
	var coded *exitError
	var incomplete *set.IncompleteError
	var several *set.SeveralError
	var none *set.NoneError
	var fault *tensor.FormatError
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &incomplete):
		return exitIncomplete
	case errors.As(err, &several), errors.As(err, &none):
		return exitFormat
	case errors.As(err, &fault):
		if errors.Is(fault.Err, iofs.ErrNotExist) {
			return exitIncomplete // external data of an ONNX model
		}
		return exitFormat
	case errors.Is(err, iofs.ErrNotExist), errors.Is(err, iofs.ErrPermission), errors.Is(err, syscall.ELOOP), errors.Is(err, store.ErrNotFound):
		return exitNoSource
	}
	return exitTrouble
}
