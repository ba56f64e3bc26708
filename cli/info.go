package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"weightfs/format"
	"weightfs/format/tensor"
)

func (a *app) info() *cobra.Command {
	var f openFlags
	var duplicates bool
	c := &cobra.Command{
		Use:        "info SOURCE",
		SuggestFor: []string{"inspect", "stat", "stats"},
		Short:      "Sum up a checkpoint: files, types, metadata, warnings",
		Args:       exactly(1, "SOURCE"),
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return f.withCheckpoint(func(c *format.Checkpoint, _ []string) error {
			warnings := slices.Concat(c.Warnings, notShown(args[0], "weightfs ls --many"))
			if a.json && !duplicates {
				return a.infoJSON(c, warnings)
			}
			a.warnAll(args[0], warnings)
			if duplicates {
				return a.runDuplicates(c)
			}
			return a.runInfo(c)
		})(cmd, args)
	}
	f.add(c)
	c.Flags().BoolVar(&duplicates, "duplicates", false, "name the tensors that have the same bytes instead: tied, or stored more than once")
	return c
}

// usage is what the tensors of one type take.
type usage struct {
	dtype           tensor.DType
	tensors         int
	elements, bytes uint64
}

func usages(c *format.Checkpoint) []usage {
	var byType [256]usage
	for i := range c.Len() {
		t := c.Tensor(i)
		u := &byType[t.DType]
		n, _ := tensor.Elements(t.Shape)
		u.dtype, u.tensors, u.elements, u.bytes = t.DType, u.tensors+1, u.elements+n, u.bytes+uint64(t.Bytes)
	}
	list := slices.DeleteFunc(byType[:], func(u usage) bool { return u.tensors == 0 })
	slices.SortStableFunc(list, func(x, y usage) int { return cmp.Compare(y.bytes, x.bytes) })
	return list
}

func (a *app) runInfo(c *format.Checkpoint) error {
	b := bufio.NewWriter(a.out)
	fmt.Fprintf(b, "%s\n", printable(c.Source))
	w := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "format\t%s\n", c.Format)
	fmt.Fprintf(w, "tensors\t%s\n", humanize.Comma(int64(c.Len())))
	fmt.Fprintf(w, "elements\t%s\n", humanize.Comma(int64(c.TotalElements())))
	fmt.Fprintf(w, "size\t%s (%s bytes)\n", sizeText(c.TotalBytes()), humanize.Comma(int64(c.TotalBytes())))
	w.Flush()
	fmt.Fprintln(b, "\nfiles")
	for _, s := range c.Shards {
		fmt.Fprintf(w, "  %s\t%s\n", printable(s.Name), sizeText(uint64(s.Size())))
	}
	w.Flush()
	fmt.Fprintln(b, "\ntypes")
	for _, u := range usages(c) {
		fmt.Fprintf(w, "  %s\t%s\t%s elements\t%s\n", u.dtype, plural(u.tensors, "tensor"), humanize.Comma(int64(u.elements)), sizeText(u.bytes))
	}
	w.Flush()
	if len(c.Meta()) > 0 {
		fmt.Fprintln(b, "\nmetadata")
		for _, kv := range c.Meta() {
			fmt.Fprintf(w, "  %s\t%s\n", printable(kv.Key), metaLine(kv.Value))
		}
		w.Flush()
	}
	return b.Flush()
}

// metaLine is a value of the metadata in at most a line.
func metaLine(value any) string {
	if l, ok := value.(interface{ Summary() string }); ok {
		return l.Summary()
	}
	const most = 100
	text := []rune(oneLine(string(tensor.AppendJSON(nil, value))))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

func (a *app) infoJSON(c *format.Checkpoint, warnings []string) error {
	var types tensor.Object
	for _, u := range usages(c) {
		types = append(types, tensor.KV{Key: u.dtype.String(), Value: tensor.Object{
			{Key: "tensors", Value: u.tensors}, {Key: "elements", Value: u.elements}, {Key: "bytes", Value: u.bytes},
		}})
	}
	files, texts := []any{}, []any{}
	for _, s := range c.Shards {
		files = append(files, tensor.Object{{Key: "name", Value: s.Name}, {Key: "size", Value: s.Size()}, {Key: "format", Value: s.Format}})
	}
	for _, text := range warnings {
		texts = append(texts, text)
	}
	doc := tensor.Object{
		{Key: "source", Value: c.Source}, {Key: "format", Value: c.Format}, {Key: "tensors", Value: c.Len()},
		{Key: "total_elements", Value: c.TotalElements()}, {Key: "total_bytes", Value: c.TotalBytes()},
		{Key: "files", Value: files}, {Key: "types", Value: types}, {Key: "metadata", Value: c.Meta()},
		{Key: "warnings", Value: texts},
	}
	_, err := fmt.Fprintf(a.out, "%s\n", tensor.AppendJSON(nil, doc))
	return err
}
