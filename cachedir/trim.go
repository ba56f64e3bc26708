package cachedir

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// most is the size of the cache, beyond which the oldest files go.
const most = 1 << 30

// The extensions of what is kept here. Other files are not touched: the environment may name a
// directory that is not ours alone.
const (
	DigestExt = ".digest" // hashes and statistics
	IndexExt  = ".index"  // what opening a checkpoint found
)

// trim removes the oldest files of the cache directory while it is too large, but not the one that
// was just written.
func trim(dir, written string, most int64) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	var total int64
	for _, e := range list {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && isOurs(e.Name()) {
			files = append(files, info)
			total += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, f := range files {
		if total <= most {
			return
		}
		if path := filepath.Join(dir, f.Name()); path != written && os.Remove(path) == nil {
			total -= f.Size()
		}
	}
}

func isOurs(name string) bool { return hasOurExt(name) && !isUnfinished(name) }

func hasOurExt(name string) bool {
	ext := filepath.Ext(name)
	return ext == DigestExt || ext == IndexExt
}
