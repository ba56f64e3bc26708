package digest

import (
	"io"
	"sync"

	"weightfs/format/tensor"
)

const (
	chunkSize  = 1 << 20 // of a read: few system calls, and a chunk is in the cache when it is summed
	chunkCount = 4       // of one tensor in memory
)

// A chunk is read once and given to every sink.
type chunk struct {
	p    []byte
	busy sync.WaitGroup
}

var chunks = sync.Pool{New: func() any { return &chunk{p: make([]byte, chunkSize)} }}

// feed gives the first size bytes of src to every sink, in order and in whole units of unit bytes,
// but for the last. Each sink has a goroutine of its own: hashing is as slow as counting, and neither
// waits for the other. What fits one chunk is not worth that.
func feed(src io.ReaderAt, size, unit int64, sinks []func(p []byte)) error {
	step := chunkSize / unit * unit
	if size <= step || len(sinks) == 1 && size <= 4*step {
		return feedInline(src, size, step, sinks)
	}
	var ring [chunkCount]*chunk
	for i := range ring {
		ring[i] = chunks.Get().(*chunk)
	}
	pipes := make([]chan *chunk, len(sinks))
	var done sync.WaitGroup
	for i, sink := range sinks {
		pipe := make(chan *chunk, chunkCount)
		pipes[i] = pipe
		done.Go(func() {
			for c := range pipe {
				sink(c.p)
				c.busy.Done()
			}
		})
	}
	err := fill(src, size, step, &ring, pipes)
	for _, pipe := range pipes {
		close(pipe)
	}
	done.Wait()
	for _, c := range ring {
		chunks.Put(c)
	}
	return err
}

// fill reads into chunks that no sink uses any more.
func fill(src io.ReaderAt, size, step int64, ring *[chunkCount]*chunk, pipes []chan *chunk) error {
	i := 0
	for off := int64(0); off < size; off += step {
		c := ring[i%chunkCount]
		c.busy.Wait()
		c.p = c.p[:min(step, size-off)]
		if err := tensor.ReadFull(src, c.p, off); err != nil {
			return err
		}
		c.busy.Add(len(pipes))
		for _, pipe := range pipes {
			pipe <- c
		}
		i++
	}
	return nil
}

func feedInline(src io.ReaderAt, size, step int64, sinks []func(p []byte)) error {
	c := chunks.Get().(*chunk)
	defer chunks.Put(c)
	for off := int64(0); off < size; off += step {
		c.p = c.p[:min(step, size-off)]
		if err := tensor.ReadFull(src, c.p, off); err != nil {
			return err
		}
		for _, sink := range sinks {
			sink(c.p)
		}
	}
	return nil
}
