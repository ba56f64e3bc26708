package store

import (
	"bytes"
	"fmt"
	"strings"

	"weightfs/format"
)

// readmeName is the file at the top of a library that says what is there.
const readmeName = "README.txt"

// newReadme makes it once, so that its size stands: the checkpoint that it names is the first that was
// there.
func (l *Library) newReadme() *textFile {
	st := l.root.Stat()
	text := readme(l.Dir(), l.first())
	st.Ino, st.Mode = l.ino(l.root.child(readmeName)), st.Mode.Perm()&0o444
	st.Nlink, st.Size = 1, int64(len(text))
	return &textFile{st, text}
}

func readme(dir, example string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `%s

Each checkpoint in it is a directory here, and so is each directory that holds some. A checkpoint is
opened when it is first entered; one that cannot be opened holds an ERROR.txt that says why. What is
added, changed or removed is seen within two seconds.

Each has a README.txt of its own. Recurse into one view of one checkpoint, not into this directory: it
would read every tensor of every checkpoint once for each view.
`, dir)
	if example != "" {
		name := format.ShellQuote(example)
		level := strings.Repeat("*/", 1+strings.Count(example, "/"))
		fmt.Fprintf(&b, "\nFrom this directory:\n  ls %[1]s\n  cat %[1]s/%[2]s\n", name, readmeName)
		fmt.Fprintf(&b, "\nThose that cannot be opened, where they lie as deep as that one:\n  ls %sERROR.txt\n", level)
	}
	fmt.Fprintf(&b, `
Without the mount:
  weightfs ls --many %[1]s
  weightfs verify %[1]s

To unmount, from outside of it:
  weightfs umount MOUNTPOINT
`, format.ShellQuote(dir))
	return b.Bytes()
}

// first is the name of the first checkpoint; empty where it takes long to find one.
func (l *Library) first() string {
	left := mostCounted
	var find func(f *folder) string
	find = func(f *folder) string {
		for _, e := range f.list() {
			child := f.child(e.name)
			if e.scan == nil {
				return child[1:]
			}
			if left--; left < 0 {
				return ""
			}
			if name := find(l.folder(child, e)); name != "" {
				return name
			}
		}
		return ""
	}
	return find(l.root)
}
