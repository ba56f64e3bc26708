//go:build unix

package format

import (
	iofs "io/fs"
	"syscall"
)

// Owner is the user and the group that a file belongs to, where files have them.
func Owner(st iofs.FileInfo) (uid, gid uint32) {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return sys.Uid, sys.Gid
	}
	return 0, 0
}
