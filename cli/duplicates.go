package cli

import (
	"bufio"
	"fmt"
	"strings"

	"weightfs/compare"
	"weightfs/format"
	"weightfs/format/tensor"
)

// runDuplicates names the tensors that have the same bytes.
func (a *app) runDuplicates(c *format.Checkpoint) error {
	shown := a.progress("duplicates", int64(c.TotalBytes()))
	list, err := compare.Duplicates(c, func(n int) { shown.add(int64(n)) })
	shown.end()
	if err != nil {
		return err
	}
	if a.json {
		return a.duplicatesJSON(c, list)
	}
	b := bufio.NewWriter(a.out)
	var waste int64
	for _, d := range list {
		waste += d.Waste()
		how := "tied"
		if d.Copies > 1 {
			how = fmt.Sprintf("%d copies", d.Copies)
		}
		fmt.Fprintf(b, "%s, %s: %s\n", how, sizeText(uint64(d.Bytes)), strings.Join(duplicateNames(c, d), ", "))
	}
	fmt.Fprintf(b, "%s of tensors with the same bytes; %s could be saved\n", countOf(len(list), "group"), sizeText(uint64(waste)))
	return b.Flush()
}

func duplicateNames(c *format.Checkpoint, d compare.Duplicate) []string {
	return mapEach(d.Tensors, func(i int) string { return printable(c.Tensor(i).Name) })
}

func (a *app) duplicatesJSON(c *format.Checkpoint, list []compare.Duplicate) error {
	groups := []any{}
	for _, d := range list {
		groups = append(groups, tensor.Object{
			{Key: "tensors", Value: mapEach(d.Tensors, func(i int) any { return c.Tensor(i).Name })},
			{Key: "nbytes", Value: d.Bytes}, {Key: "copies", Value: d.Copies},
		})
	}
	doc := tensor.Object{{Key: "schema", Value: 1}, {Key: "source", Value: c.Source}, {Key: "duplicates", Value: groups}}
	_, err := fmt.Fprintf(a.out, "%s\n", tensor.AppendJSON(nil, doc))
	return err
}
