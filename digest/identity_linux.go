package digest

import (
	iofs "io/fs"
	"syscall"
)

func (id *identity) fill(st iofs.FileInfo) {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		id.dev, id.ino, id.ctime = uint64(sys.Dev), sys.Ino, sys.Ctim.Nano()
	}
}

func deviceOf(st iofs.FileInfo) uint64 {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return uint64(sys.Dev)
	}
	return 0
}
