package cli

import (
	"bytes"
	"io"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"weightfs/format"
)

func (a *app) cat() *cobra.Command {
	var f openFlags
	c := &cobra.Command{
		Use:   "cat SOURCE TENSOR|PATH...",
		Short: "Write a tensor's elements, or a file of the tree, to standard output",
		Long: `Write a tensor's elements (as raw/ has them), or a file of the tree, to standard output. Each
argument is tried as a tensor's name first, then as a path of the tree: npy/model/norm.weight.npy,
parts/model/layers/0.safetensors, tensors.json.`,
		Args:              between(2, 0, "SOURCE and at least one TENSOR or PATH"),
		RunE:              f.withCheckpoint(a.runCat),
		ValidArgsFunction: f.completeTensors(-1),
	}
	f.add(c)
	return c
}

func (a *app) runCat(c *format.Checkpoint, args []string) error {
	for _, arg := range args {
		if err := a.catOne(c, arg); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) catOne(c *format.Checkpoint, arg string) error {
	content, tensor, err := find(c, arg)
	if err != nil {
		return err
	}
	if closer, ok := content.(io.Closer); ok {
		defer closer.Close()
	}
	if onTerminal(a.out) && (tensor || !isText(content)) {
		return usageError("%s is binary: redirect it to a file or a pipe (weightfs show prints values)", arg)
	}
	return copyContent(a.out, content)
}

// find gives the content of a tensor's name or a path of the tree, and which of these it is.
func find(c *format.Checkpoint, arg string) (content format.Content, tensor bool, err error) {
	if i, ok := c.ByName(arg); ok {
		content, err = c.Elements(i)
		return content, true, err
	}
	_, n, err := treePath(c, c.Root(), arg)
	if err != nil {
		return nil, false, err
	}
	file, ok := n.(format.File)
	if !ok {
		return nil, false, usageError("%s is a directory", arg)
	}
	content, err = file.Open()
	return content, false, err
}

// isText judges by the beginning, as file(1) does.
func isText(c format.Content) bool {
	head := make([]byte, min(c.Size(), 512))
	if _, err := (format.ContentReader{Content: c}).ReadAt(head, 0); err != nil {
		return true // reading it will say why not
	}
	for range utf8.UTFMax - 1 { // the last character may be cut off
		if utf8.Valid(head) {
			break
		}
		head = head[:len(head)-1]
	}
	return utf8.Valid(head) && !bytes.ContainsRune(head, 0)
}

// copyBuffer is large enough that a copy costs few system calls.
const copyBuffer = 1 << 20

func copyContent(w io.Writer, c format.Content) error {
	r := io.NewSectionReader(format.ContentReader{Content: c}, 0, c.Size())
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, copyBuffer))
	return err
}
