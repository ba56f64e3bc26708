package cli

import (
	"errors"
	"io"
	iofs "io/fs"
	"strings"

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
		content, text, err := find(c, arg)
		if err != nil {
			return err
		}
		if !text && onTerminal(a.out) {
			return usageError("%s is binary: redirect it to a file or a pipe (weightfs show prints values)", arg)
		}
		if err := copyContent(a.out, content); err != nil {
			return err
		}
	}
	return nil
}

// find gives the content of a tensor's name or a path of the tree, and whether it is text.
func find(c *format.Checkpoint, arg string) (content format.Content, text bool, err error) {
	if i, ok := c.ByName(arg); ok {
		content, err = c.Elements(i)
		return content, false, err
	}
	path := strings.Trim(arg, "/")
	n, err := format.Follow(c.Root(), path)
	if errors.Is(err, iofs.ErrNotExist) || errors.Is(err, iofs.ErrInvalid) {
		return nil, false, noTensor(c, arg)
	}
	if err != nil {
		return nil, false, err
	}
	file, ok := n.(format.File)
	if !ok {
		return nil, false, usageError("%s is a directory", arg)
	}
	content, err = file.Open()
	return content, !isBinary(path), err
}

func isBinary(path string) bool {
	for _, ext := range []string{".raw", ".npy", ".safetensors"} {
		if strings.HasSuffix(path, ext) {
			return true
		}
	}
	return false
}

// copyBuffer is large enough that a copy costs few system calls.
const copyBuffer = 1 << 20

func copyContent(w io.Writer, c format.Content) error {
	r := io.NewSectionReader(format.ContentReader{Content: c}, 0, c.Size())
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, copyBuffer))
	return err
}
