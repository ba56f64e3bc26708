package set

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"weightfs/format/detect"
)

const (
	errNotDir = syscall.ENOTDIR
	errLoop   = syscall.ELOOP // links that lead to each other lead nowhere
)

// ErrNone: there is no checkpoint. It is under every *NoneError.
var ErrNone = errors.New("no checkpoint here")

// A NoneError is a directory that holds no checkpoint at its own level.
type NoneError struct {
	Dir   string
	Names []string // what is there, directories with a slash
	Known error    // what the directory is when it is of a kind that is not read; else nil
}

// Error names what is there instead.
func (e *NoneError) Error() string {
	switch {
	case e.Known != nil:
		return fmt.Sprintf("%s: %v", e.Dir, e.Known)
	case len(e.Names) == 0:
		return fmt.Sprintf("%s: no checkpoint here: the directory is empty", e.Dir)
	}
	msg := fmt.Sprintf("%s: no checkpoint here, only %s", e.Dir, Enumerate(e.Names, 8))
	for _, name := range e.Names {
		if command := detect.Unpacker(name); command != "" {
			return fmt.Sprintf("%s (%s unpacks %s)", msg, command, printable(name))
		}
	}
	return msg
}

// Unwrap gives ErrNone, and what is known.
func (e *NoneError) Unwrap() []error {
	if e.Known == nil {
		return []error{ErrNone}
	}
	return []error{ErrNone, e.Known}
}

// A SeveralError is a directory of more than one checkpoint.
type SeveralError struct {
	Dir   string
	Names []string // each a path below Dir that Find takes
}

// Error names them.
func (e *SeveralError) Error() string {
	return fmt.Sprintf("%s: several checkpoints here: %s (name one of them)", e.Dir, Enumerate(e.Names, 20))
}

// An IncompleteError is a checkpoint of which files are missing.
type IncompleteError struct {
	Dir        string
	Index      string // that names them; empty where the file names do
	Total      int    // files that there should be
	Missing    []Absent
	Partial    bool     // whether Options.Partial would take the rest
	Unfinished []string // downloads below the directory or its cache that were not finished
}

// An Absent is a missing file.
type Absent struct {
	Name     string
	Target   string // of the link that is there in its place: in a hub cache the missing blob
	Download string // a part of it that was downloaded
}

// Error is one line that names every missing file.
func (e *IncompleteError) Error() string {
	where := e.Dir
	if e.Index != "" {
		where = filepath.Join(e.Dir, e.Index)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", where, e.summary())
	if len(e.Unfinished) > 0 {
		fmt.Fprintf(&b, "; unfinished downloads: %s", Enumerate(e.Unfinished, 3))
	}
	if e.Partial {
		b.WriteString(" (--partial shows the rest)")
	}
	return b.String()
}

func (e *IncompleteError) summary() string {
	const limit = 200
	var names []string
	for _, a := range e.Missing[:min(len(e.Missing), limit)] {
		names = append(names, a.String())
	}
	list := strings.Join(names, ", ")
	if len(e.Missing) > limit {
		list = fmt.Sprintf("%s and %d more", list, len(e.Missing)-limit)
	}
	return fmt.Sprintf("%d of %s missing: %s", len(e.Missing), plural(e.Total, "file"), list)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// String is the name and what is known of its absence.
func (a Absent) String() string {
	var known []string
	if a.Target != "" {
		known = append(known, "a link to "+printable(a.Target)+", which is not there")
	}
	if a.Download != "" {
		known = append(known, "download unfinished: "+printable(a.Download))
	}
	if len(known) == 0 {
		return printable(a.Name)
	}
	return printable(a.Name) + " (" + strings.Join(known, "; ") + ")"
}

// download finds what a download of path left when it stopped: curl, wget, browsers, aria2 and the
// hub's client each have their ending.
func download(path string) string {
	for _, ext := range []string{".incomplete", ".part", ".partial", ".crdownload", ".aria2", ".tmp"} {
		if st, err := os.Stat(path + ext); err == nil && st.Mode().IsRegular() {
			return fmt.Sprintf("%s, %d bytes", path+ext, st.Size())
		}
	}
	return ""
}

// unfinished lists the hub client's unfinished downloads: in the cache below blobs, in a plain
// directory below .cache.
func unfinished(dir string) []string {
	under := filepath.Join(dir, ".cache", "huggingface", "download")
	if repo := snapshotRepo(dir); repo != "" {
		under = filepath.Join(repo, "blobs")
	}
	entries, err := os.ReadDir(under)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".incomplete") {
			out = append(out, filepath.Join(under, e.Name()))
		}
	}
	return out
}
