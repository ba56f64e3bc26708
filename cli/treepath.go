package cli

import (
	"errors"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"weightfs/format"
)

// treePath finds what a path of the tree names, however it is written: without a mount links that
// lead out of the tree are followed as well.
func treePath(c *format.Checkpoint, tree format.Dir, arg string) (at string, n format.Node, err error) {
	at = strings.TrimPrefix(path.Clean("/"+arg), "/")
	if at == "" {
		at = "."
	}
	n, err = format.Lookup(tree, at)
	if errors.Is(err, iofs.ErrNotExist) && strings.ContainsAny(arg, "*?") {
		return at, nil, failf(exitNoTensor, "%s: no tensor %q, and no patterns here (weightfs ls SOURCE PATTERN lists tensors, --include with cp -r chooses them)", c.Source, arg)
	}
	if errors.Is(err, iofs.ErrNotExist) {
		return at, nil, noTensor(c, arg)
	}
	if err == nil {
		n, err = follow(tree, at, n)
	}
	return at, n, err
}

// follow gives what a link of the tree leads to, in the tree or on the disk.
func follow(tree format.Dir, at string, n format.Node) (format.Node, error) {
	link, ok := n.(format.Link)
	switch {
	case !ok:
		return n, nil
	case path.IsAbs(link.Target()):
		return newLinkedFile(link.Target())
	}
	return format.Follow(tree, path.Join(path.Dir(at), link.Target()))
}

// A linkedFile is a file on the disk that a link of the tree leads to.
type linkedFile struct {
	path string
	stat iofs.FileInfo
}

func newLinkedFile(path string) (*linkedFile, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return &linkedFile{path, st}, nil
}

// Stat implements format.Node.
func (f *linkedFile) Stat() format.Stat {
	return format.Stat{Mode: f.stat.Mode(), Size: f.stat.Size(), ModTime: f.stat.ModTime()}
}

// Open implements format.File. The content is to be closed.
func (f *linkedFile) Open() (format.Content, error) {
	s, err := format.OpenShard(filepath.Base(f.path), f.path)
	if err != nil {
		return nil, err
	}
	return wholeFile{s}, nil
}

// wholeFile is a file as a Content.
type wholeFile struct{ *format.Shard }

// Segment implements format.Content.
func (f wholeFile) Segment(int64) (format.Segment, int64) {
	return format.Range(f.Shard, 0, f.Size()), 0
}
