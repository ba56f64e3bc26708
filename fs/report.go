//go:build linux

package fs

import (
	"errors"
	"syscall"
	"time"

	"weightfs/format"
)

// A fault is what report logs once.
type fault struct {
	cause any // the shard, or the inode number
	errno syscall.Errno
}

// reportAgain is when a fault that lasts, or has come back, is worth another line.
const reportAgain = time.Hour

// report logs why a reader got an error, once for each cause: a loader that reads on over a shard
// that is gone would fill the log. The error tells of the shard, and of the place in it where
// there is one.
func (t *tree) report(n format.Node, tensor string, err error) {
	f := fault{cause: n.Stat().Ino, errno: errnoOf(err)}
	attrs := []any{"errno", f.errno.Error()}
	if tensor != "" {
		attrs = append(attrs, "tensor", tensor)
	}
	read, ok := errors.AsType[*format.ReadError](err)
	file, isTensor := n.(format.TensorFile)
	switch {
	case ok:
		f.cause = read.Shard
	case isTensor && errors.Is(err, format.ErrStale):
		f.cause = file.Tensor().Shard
	case isTensor:
		attrs = append(attrs, "file", file.Tensor().Shard.Path)
	}
	now := time.Now()
	if last, again := t.reported.LoadOrStore(f, now); again {
		if now.Sub(last.(time.Time)) < reportAgain || !t.reported.CompareAndSwap(f, last, now) {
			return
		}
	}
	t.Logger.Error(err.Error(), attrs...)
}

func tensorOf(f format.File) string {
	if tf, ok := f.(format.TensorFile); ok {
		return tf.Tensor().Name
	}
	return ""
}
