//go:build unix

package store

import (
	"os"
	"syscall"
)

func owner(info os.FileInfo) (uid, gid uint32) {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		return sys.Uid, sys.Gid
	}
	return 0, 0
}
