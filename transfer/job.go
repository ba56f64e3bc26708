package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"weightfs/format"
)

const (
	chunkSize  = 4 << 20  // what one worker copies at a time
	bufferSize = 1 << 20  // stays in the processor's cache from the read to the write
	kernelMin  = 64 << 10 // below this a system call of its own costs more than it saves
	mostJobs   = 4
)

// stripeSize is what a copy that was cut off may have lost; tests make it smaller.
var stripeSize int64 = 64 << 20

// A job is the copying of one file.
type job struct {
	*Copier
	ctx     context.Context
	content format.Content
	size    int64
	mtime   time.Time
	tensor  bool // its bytes depend on nothing but a tensor
	to      string

	part    *partial
	digests [][sha256.Size]byte // with Verify, of the chunks that were read; zero for the others
	reads   atomic.Bool         // the kernel will not copy
}

func (j *job) run() error {
	part, err := j.open()
	if err != nil {
		return j.failed(j.to, err)
	}
	j.part = part
	j.opt.Meter.Spared(part.done)
	if err = j.copy(); err == nil {
		err = j.finish()
	}
	if err == nil {
		return nil
	}
	if mismatch := (*MismatchError)(nil); errors.As(err, &mismatch) {
		part.remove()
	} else {
		part.leave()
	}
	if write := (*WriteError)(nil); errors.As(err, &write) {
		write.Kept = part.kept
	}
	return err
}

// open makes the file that becomes the copy. Of one stripe or less nothing is kept.
func (j *job) open() (*partial, error) {
	if !j.opt.Resume || j.size <= stripeSize {
		return newPartial(j.to)
	}
	id, err := j.identity()
	if err != nil {
		return nil, err
	}
	return openPartial(j.to, id, j.size)
}

// copy copies what is not there yet. To be resumed, in stripes: those before the last two are on the
// disk before anything behind them is written.
func (j *job) copy() error {
	if j.opt.Verify {
		j.digests = make([][sha256.Size]byte, (j.size+chunkSize-1)/chunkSize)
	}
	for j.part.done < j.size {
		end := j.size
		if j.opt.Resume {
			end = min(end, j.part.done+stripeSize)
		}
		if err := j.chunks(j.part.done, end, j.chunk); err != nil {
			return err
		}
		j.part.done = end
		if j.opt.Resume && end < j.size {
			if err := j.part.flush(); err != nil {
				return j.failed(j.to, err)
			}
		}
	}
	return nil
}

// chunks does a range chunk by chunk, on all cores.
func (j *job) chunks(from, end int64, do func(off, end int64, buf []byte) error) error {
	group, ctx := errgroup.WithContext(j.ctx)
	var next atomic.Int64
	next.Store(from)
	for range min(int64(min(runtime.GOMAXPROCS(0), mostJobs)), (end-from+chunkSize-1)/chunkSize) {
		group.Go(func() error {
			buf := buffers.Get().(*[bufferSize]byte)
			defer buffers.Put(buf)
			for ctx.Err() == nil {
				off := next.Add(chunkSize) - chunkSize
				if off >= end {
					return nil
				}
				if err := do(off, min(off+chunkSize, end), buf[:]); err != nil {
					return err
				}
			}
			return context.Cause(ctx)
		})
	}
	return group.Wait()
}

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// chunk copies one chunk: long ranges of a file by the kernel, the rest through a buffer.
func (j *job) chunk(off, end int64, buf []byte) error {
	sum := sha256.New()
	for at := off; at < end; {
		n, err := j.byKernel(at, end)
		if errors.Is(err, errors.ErrUnsupported) {
			n = min(int64(len(buf)), end-at)
			if _, err := (format.ContentReader{Content: j.content}).ReadAt(buf[:n], at); err != nil {
				return err
			}
			if j.opt.Verify {
				sum.Write(buf[:n])
			}
			_, err = j.part.file.WriteAt(buf[:n], at)
			err = j.failed(j.to, err)
		}
		if err != nil {
			return err
		}
		at += n
		j.opt.Meter.Done(n)
	}
	if j.opt.Verify {
		sum.Sum(j.digests[off/chunkSize][:0])
	}
	return nil
}

// byKernel has the kernel copy the range of a file that holds offset off of the content, and gives
// its length. The bytes are not seen: to verify a copy they must be.
func (j *job) byKernel(off, end int64) (int64, error) {
	if j.opt.Verify || j.reads.Load() {
		return 0, errors.ErrUnsupported
	}
	seg, start := j.content.Segment(off)
	if seg.Shard == nil {
		return 0, errors.ErrUnsupported
	}
	from, n := seg.Off+off-start, start+seg.Len-off
	for off+n < end { // tensors that follow each other in the file too
		next, _ := j.content.Segment(off + n)
		if next.Shard != seg.Shard || next.Off != from+n {
			break
		}
		n += next.Len
	}
	if n = min(n, end-off); n < kernelMin {
		return 0, errors.ErrUnsupported
	}
	err := seg.Shard.CopyTo(j.part.file, off, from, n)
	if errors.Is(err, errors.ErrUnsupported) {
		j.reads.Store(true)
	} else if _, ok := errors.AsType[*os.SyscallError](err); ok {
		err = j.failed(j.to, err)
	}
	return n, err
}

// finish makes the copy out of the finished file.
func (j *job) finish() error {
	if err := j.part.settle(); err != nil {
		return j.failed(j.to, err)
	}
	flushed := j.size >= smallFile || j.opt.Verify
	if flushed {
		if err := j.part.file.Sync(); err != nil {
			return j.failed(j.to, err)
		}
	}
	if j.opt.Verify {
		if err := j.verify(j.part.file); err != nil {
			return err
		}
	}
	if err := j.part.become(j.to, j.mtime); err != nil {
		return j.failed(j.to, err)
	}
	j.finished(j.to, flushed)
	return nil
}
