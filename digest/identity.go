package digest

import (
	"crypto/sha256"
	iofs "io/fs"
	"path/filepath"
	"time"
)

// An identity is one state of a file. Another state, and another file in its place, differ in it.
type identity struct {
	path         string // without links
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // nanoseconds
}

// identify tells the state of the file that was opened at path, when st was taken of it.
func identify(path string, st iofs.FileInfo) (identity, error) {
	real, err := filepath.Abs(path)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	id := identity{path: real, size: st.Size(), mtime: st.ModTime().UnixNano()}
	id.fill(st)
	return id, err
}

// settled tells whether the file has rested for longer than a tick of the clock that its times are
// taken from: one that changes twice within a tick looks the same.
func (id identity) settled() bool {
	const tick = 20 * time.Millisecond
	return time.Since(time.Unix(0, max(id.mtime, id.ctime))) > tick
}

func (id identity) sum() [sha256.Size]byte {
	return sha256.Sum256(append(appendInts(nil, int64(id.dev), int64(id.ino), id.size, id.mtime, id.ctime), id.path...))
}
