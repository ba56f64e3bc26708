package cli

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"weightfs/format"
	"weightfs/format/names"
)

func (a *app) ls() *cobra.Command {
	var f manyFlags
	var long bool
	c := &cobra.Command{
		Use:        "ls SOURCE [PATTERN]",
		SuggestFor: []string{"list", "dir", "tree"},
		Short:      "List the tensors of a checkpoint, or the checkpoints of a directory",
		Long: `List the tensors of a checkpoint. PATTERN is a shell glob over their names, in which * matches
dots and slashes too: weightfs ls model.safetensors '*q_proj*'

Of a directory that holds many checkpoints their names are listed, and none is opened.`,
		Args: between(1, 2, "SOURCE and perhaps a PATTERN"),
		RunE: func(_ *cobra.Command, args []string) error {
			c, many, err := f.openAny(args[0])
			switch {
			case err != nil:
				return err
			case many != nil:
				return a.lsMany(many, args[0], args[1:], long)
			}
			defer c.Close()
			defer c.Keep()
			if !a.json { // tensors.json has them
				a.warnOf(args[0], c.Warnings)
			}
			a.warnNotShown(args[0], "--many")
			return a.runLs(c, args[1:], long)
		},
		ValidArgsFunction: f.completeTensors(1),
	}
	f.add(c)
	f.addMany(c.Flags())
	c.Flags().BoolVarP(&long, "long", "l", false, "show the file and offset of each tensor, or the files and the size of each checkpoint, as well")
	return c
}

func (a *app) runLs(c *format.Checkpoint, args []string, long bool) error {
	list, err := selectTensors(c, args)
	if err != nil {
		return err
	}
	if a.json {
		doc := c.TensorsJSON(list)
		_, err := io.Copy(a.out, io.NewSectionReader(doc, 0, doc.Size()))
		return err
	}
	return printTensors(a.out, c, list, long)
}

// selectTensors gives the tensors that a pattern names, all of them without one, in the order of the
// tree.
func selectTensors(c *format.Checkpoint, args []string) ([]int, error) {
	var p names.Pattern
	if len(args) > 0 {
		var err error
		if p, err = names.NewPattern(args[0]); err != nil {
			return nil, usageError("%v", err)
		}
	}
	var list []int
	for i := range c.InOrder() {
		if len(args) == 0 || p.Match(c.Tensor(i).Name) {
			list = append(list, i)
		}
	}
	if len(list) == 0 && len(args) > 0 {
		return nil, noTensor(c, args[0])
	}
	return list, nil
}

func printTensors(out io.Writer, c *format.Checkpoint, list []int, long bool) error {
	buffered := bufio.NewWriter(out)
	w := tabwriter.NewWriter(buffered, 0, 4, 2, ' ', 0)
	head := "NAME\tDTYPE\tSHAPE\tSIZE"
	if long {
		head += "\tBYTES\tOFFSET\tFILE"
	}
	fmt.Fprintln(w, head)
	var total uint64
	for _, i := range list {
		t := c.Tensor(i)
		total += uint64(t.Bytes)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s", printable(t.Name), t.DType, shapeText(t.Shape), sizeText(uint64(t.Bytes)))
		if long {
			offset := strconv.FormatInt(t.Extent.Off, 10)
			if t.Layout != nil {
				offset = t.Layout.Reason()
			}
			fmt.Fprintf(w, "\t%d\t%s\t%s", t.Bytes, offset, printable(t.Shard.Name))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Fprintf(buffered, "%s, %s\n", plural(len(list), "tensor"), sizeText(total))
	return buffered.Flush()
}

// printable writes a name so that it cannot move a terminal's cursor; a plain one as it is.
func printable(name string) string {
	q := strconv.Quote(name)
	if name == "" || q[1:len(q)-1] != name {
		return q
	}
	return name
}

func shapeText(shape []uint64) string {
	parts := make([]string, len(shape))
	for i, d := range shape {
		parts[i] = strconv.FormatUint(d, 10)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
