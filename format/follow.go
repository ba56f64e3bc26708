package format

import (
	iofs "io/fs"
	"path"
	"strings"
)

// maxLinks bounds the links that one path may follow.
const maxLinks = 8

// Lookup walks from a directory to the node of a slash-separated path, without following a link.
func Lookup(root Dir, name string) (Node, error) {
	var n Node = root
	if name == "." {
		return n, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		d, ok := n.(Dir)
		if !ok {
			return nil, iofs.ErrNotExist
		}
		var err error
		if n, err = d.Lookup(part); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// Follow walks to the node of a path as Lookup does, and follows the links that it ends in. A link
// that leads out of the tree is iofs.ErrNotExist.
func Follow(root Dir, name string) (Node, error) {
	if !iofs.ValidPath(name) {
		return nil, iofs.ErrInvalid
	}
	for range maxLinks {
		n, err := Lookup(root, name)
		l, ok := n.(Link)
		if err != nil || !ok {
			return n, err
		}
		name = path.Join(path.Dir(name), l.Target())
		if path.IsAbs(l.Target()) || !iofs.ValidPath(name) {
			break
		}
	}
	return nil, iofs.ErrNotExist
}
