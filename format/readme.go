package format

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
)

// readme renders README.txt, with commands that work on this very checkpoint.
func (c *Checkpoint) readme() []byte {
	var b bytes.Buffer
	t := c.total()
	fmt.Fprintf(&b, "%s\n\n%s, %s, %s, %s elements\n\n", c.Source, c.Format, plural(c.Len(), "tensor"), humanize.IBytes(t.bytes), humanize.Comma(int64(t.elements)))
	for _, e := range c.readmeEntries() {
		fmt.Fprintf(&b, "%-14s %s\n", e.name, e.what)
	}
	b.WriteString(`
Each view has the same paths below it. Recurse into one of them, not into this directory:
it would read every tensor once for each view.
`)
	c.readmeCommands(&b)
	b.WriteString("\nTo unmount, from outside of it:\n  weightfs umount MOUNTPOINT\n")
	return b.Bytes()
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

type readmeEntry struct{ name, what string }

// readmeEntries are the entries of the top that are there.
func (c *Checkpoint) readmeEntries() []readmeEntry {
	list := []readmeEntry{
		{"tensors.json", "every tensor, every file, every warning"},
		{"metadata.json", "the checkpoint's own key/value metadata"},
	}
	if c.shows(rawView.name) {
		list = append(list, readmeEntry{"SHA256SUMS", "of everything in raw/, for sha256sum -c; computed when it is read"})
	}
	for _, v := range []readmeEntry{
		{"raw", "elements only: contiguous, row-major, little-endian"},
		{"json", "dtype, shape, where the bytes lie"},
		{"npy", "the same bytes behind a NumPy header"},
		{"f32", "floating-point and quantised tensors decoded to float32, but not F64, F6, nor F4 without scales"},
		{"rows", "one slice of dimension 0 a file, of tensors of three dimensions and more"},
		{"stats", "minimum, maximum, mean, NaN, SHA-256; computed when it is read"},
		{"parts", "all tensors below a directory as one safetensors file"},
		{"by-name", "a link for each tensor, called as the tensor is"},
		{"assembled", "the whole checkpoint as one safetensors file, beside its other files"},
		{"files", "links to the checkpoint's own files"},
	} {
		if c.shows(v.name) {
			list = append(list, readmeEntry{v.name + "/", v.what})
		}
	}
	return list
}

// readmeCommands are for a tensor of this checkpoint, in the views that are there.
func (c *Checkpoint) readmeCommands(b *bytes.Buffer) {
	if c.Len() == 0 {
		return
	}
	node := c.index.Records[c.example()].Node
	path := c.index.Path(node)
	var lines []string
	for _, v := range []struct {
		view     *view
		commands string // with %[1]s for the file
	}{
		{rawView, "find raw -type f | head\nod -A d -t x1 -N 64 %[1]s"},
		{jsonView, "cat %[1]s"},
		{npyView, `python3 -c 'import sys, numpy; print(numpy.load(sys.argv[1], mmap_mode="r"))' %[1]s`},
	} {
		if c.shows(v.view.name) && v.view.shows(c.index, node) {
			file := ShellQuote(v.view.name + "/" + path + v.view.ext)
			lines = append(lines, strings.Split(fmt.Sprintf(v.commands, file), "\n")...)
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(b, "\nFrom this directory:\n  %s\n", strings.Join(lines, "\n  "))
	}
}

// example is a tensor to show commands with: the first that holds anything.
func (c *Checkpoint) example() int {
	for i := range c.index.Records {
		if c.index.Records[i].Bytes > 0 {
			return i
		}
	}
	return 0
}
