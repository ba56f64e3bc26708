//go:build !unix

package metrics

import (
	"strconv"
	"syscall"
)

func errnoName(errno syscall.Errno) string { return strconv.Itoa(int(errno)) }
