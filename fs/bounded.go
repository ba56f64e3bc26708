//go:build linux

package fs

import (
	"errors"
	"time"
)

// probeTime is how long a look at a mount may take.
const probeTime = 2 * time.Second

var errNoAnswer = errors.New("no answer")

// bounded gives what a look at a mount finds, or errNoAnswer. One that is stuck keeps its goroutine for good.
func bounded[T any](probe func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	c := make(chan result, 1)
	go func() {
		v, err := probe()
		c <- result{v, err}
	}()
	select {
	case r := <-c:
		return r.value, r.err
	case <-time.After(probeTime):
		var none T
		return none, errNoAnswer
	}
}
