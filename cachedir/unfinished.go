package cachedir

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// unfinished holds the names of the files that this process is writing.
var unfinished sync.Map

const unfinishedPrefix = ".new-"

// An unfinishedFile is one that has no place of its own yet. Until it is released every other process can
// tell that its writer lives.
type unfinishedFile struct {
	*os.File
	unlock func()
}

// create makes a file to be renamed. One that a sweep took for left behind before it was locked is made
// once more.
func create(dir, ext string) (*unfinishedFile, error) {
	for {
		f, err := os.CreateTemp(dir, unfinishedPrefix+"*"+ext)
		if err != nil {
			return nil, err
		}
		unfinished.Store(f.Name(), nil)
		if unlock, ok := lock(f); ok {
			return &unfinishedFile{f, unlock}, nil
		}
		unfinished.Delete(f.Name())
		f.Close()
	}
}

func (f *unfinishedFile) release() {
	unfinished.Delete(f.Name())
	f.unlock()
}

// Abandon removes what this process is still writing, since it is about to end.
func Abandon() {
	unfinished.Range(func(name, _ any) bool {
		os.Remove(name.(string))
		return true
	})
}

// sweep removes what processes that ended left unfinished.
func sweep(dir string) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range list {
		if e.Type().IsRegular() && isUnfinished(e.Name()) {
			removeAbandoned(filepath.Join(dir, e.Name()))
		}
	}
}

// isUnfinished tells a name that create makes.
func isUnfinished(name string) bool {
	number, ok := strings.CutPrefix(strings.TrimSuffix(name, filepath.Ext(name)), unfinishedPrefix)
	return ok && number != "" && strings.Trim(number, "0123456789") == "" && hasOurExt(name)
}
