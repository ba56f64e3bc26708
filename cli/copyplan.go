package cli

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"weightfs/format"
	"weightfs/format/index"
	"weightfs/transfer"
)

// A copyItem is a file or a directory of the tree, and where its copy goes.
type copyItem struct {
	path string // in the tree
	node format.Node
	to   string
}

// plan finds what the arguments name, and where it goes by the rules of cp(1).
func (cp *copying) plan(args []string, dest string) ([]copyItem, error) {
	cp.guard = cp.newGuard()
	into, err := cp.checkDest(dest, len(args))
	if err != nil {
		return nil, err
	}
	var items []copyItem
	for _, arg := range args {
		item, name, err := cp.find(arg)
		if err != nil {
			return nil, err
		}
		_, dir := item.node.(format.Dir)
		if dir && into && cp.recursive && cp.opt.Resume && len(args) == 1 {
			begun, err := cp.begun(item, dest)
			if err != nil {
				return nil, err
			}
			if begun {
				item.to = filepath.Clean(dest)
				return []copyItem{item}, nil
			}
		}
		switch {
		case dir && !cp.recursive:
			return nil, usageError("%s is a directory (-r copies it%s)", arg, cp.inOneFile(item.path))
		case !dir && !into && strings.HasSuffix(dest, "/"):
			return nil, usageError("%s: no such directory", dest)
		case dir && !into && exists(dest):
			return nil, usageError("%s: not a directory, and %s is one", dest, arg)
		}
		item.to = filepath.Clean(dest)
		if into && item.path != "." {
			item.to = filepath.Join(dest, name)
		}
		items = append(items, item)
	}
	return items, nil
}

// inOneFile is a hint at the file of parts/ that holds all that a directory of it does.
func (cp *copying) inOneFile(dir string) string {
	file := dir + ".safetensors"
	if _, err := format.Lookup(cp.tree, file); err != nil {
		return ""
	}
	return "; " + file + " is all of it in one file"
}

var errBegun = errors.New("begun")

// begun tells whether a directory that is there holds a copy of the item, or part of one: it was not
// there when that copy began.
func (cp *copying) begun(item copyItem, dest string) (bool, error) {
	copier := transfer.New(cp.opt)
	item.to = filepath.Clean(dest)
	err := cp.walk(item, func(item copyItem) error {
		file, ok := item.node.(format.File)
		if !ok {
			return nil
		}
		begun, err := copier.Begun(file, item.to)
		if begun {
			return errBegun
		}
		return err
	})
	if err == errBegun {
		return true, nil
	}
	return false, err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// checkDest tells whether copies go into DEST: it is a directory.
func (cp *copying) checkDest(dest string, n int) (into bool, err error) {
	st, err := os.Stat(dest)
	there, into := err == nil, err == nil && st.IsDir()
	switch {
	case err != nil && !errors.Is(err, iofs.ErrNotExist):
		return false, failf(exitTrouble, "%s: %w", dest, cause(err))
	case n > 1 && !there:
		return false, usageError("%s: no such directory", dest)
	case n > 1 && !into:
		return false, usageError("%s: not a directory, and %d arguments were to be copied", dest, n)
	}
	dir := dest
	if !into {
		dir = filepath.Dir(filepath.Clean(dest))
	}
	if st, err := os.Stat(dir); errors.Is(err, iofs.ErrNotExist) {
		return false, usageError("%s: %w (mkdir -p %s)", dir, cause(err), format.ShellQuote(dir))
	} else if err != nil {
		return false, usageError("%s: %w", dir, cause(err))
	} else if !st.IsDir() {
		return false, usageError("%s: %w", dir, syscall.ENOTDIR)
	}
	return into, cp.guard.check(dir)
}

// find gives what an argument names, and what it is called in a directory: a tensor by its whole
// name, since many tensors' files are called weight.raw.
func (cp *copying) find(arg string) (copyItem, string, error) {
	if i, ok := cp.checkpoint.ByName(arg); ok {
		at := "raw/" + cp.checkpoint.Tensor(i).Path + ".raw"
		n, err := format.Lookup(cp.tree, at)
		return copyItem{path: at, node: n}, index.Flat(arg) + ".raw", err
	}
	at, n, err := treePath(cp.checkpoint, cp.tree, arg)
	return copyItem{path: at, node: n}, path.Base(at), err
}

// walk visits an item and all below it, directories before what is in them.
func (cp *copying) walk(item copyItem, visit func(copyItem) error) error {
	if err := visit(item); err != nil {
		return err
	}
	dir, ok := item.node.(format.Dir)
	if !ok {
		return nil
	}
	list := dir.List()
	for i := range list.Len() {
		name := list.At(i).Name
		if !filepath.IsLocal(name) || strings.Contains(name, "/") {
			return failf(exitTrouble, "%s: entry %q is no file name", item.path, name)
		}
		n, err := dir.Lookup(name)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", item.path, name, err)
		}
		below := copyItem{path: path.Join(item.path, name), to: filepath.Join(item.to, name)}
		if below.node, err = follow(cp.tree, below.path, n); err != nil {
			return err
		}
		if err := cp.walk(below, visit); err != nil {
			return err
		}
	}
	return nil
}

// survey adds up the sizes, and refuses to copy two files to one name.
func (cp *copying) survey(items []copyItem) (total int64, err error) {
	taken := map[string]string{}
	for _, item := range items {
		err := cp.walk(item, func(item copyItem) error {
			if _, ok := item.node.(format.Dir); ok {
				return nil
			}
			total += item.node.Stat().Size
			if len(items) == 1 {
				return nil
			}
			if other, twice := taken[item.to]; twice {
				return usageError("%s: both %s and %s would be copied there", item.to, other, item.path)
			}
			taken[item.to] = item.path
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return total, nil
}
