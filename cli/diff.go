package cli

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"weightfs/compare"
	"weightfs/format"
	"weightfs/format/tensor"
)

func (a *app) diff() *cobra.Command {
	d := &diffing{app: a}
	c := &cobra.Command{
		Use:        "diff A B",
		SuggestFor: []string{"compare", "cmp"},
		Short:      "Tell in what two checkpoints differ, tensor by tensor",
		Long: `Tell in what two checkpoints differ: tensors that were added, removed or renamed (the same bytes under
another name), and those of another type, shape or value. Values are compared decoded, so the
checkpoints need not be of one format; --map makes names agree:

  weightfs diff model/ model-Q4_K_M.gguf --map llama.cpp

ABS and REL are the largest |a-b| and |a-b|/max(|a|,|b|); RMS, where the types differ, is the root of the
mean square of a-b over that of the values, with "rounding" behind it when it is no more than rounding to
the coarser type makes. The exit code is 0 when nothing differs and 1 when something does.`,
		Args: exactly(2, "A and B"),
		RunE: func(_ *cobra.Command, args []string) error { return d.run(args[0], args[1]) },
	}
	d.add(c)
	return c
}

// A diffing is one call of diff.
type diffing struct {
	*app
	openFlags
	a, b *format.Checkpoint
}

func (d *diffing) run(a, b string) (err error) {
	if d.a, err = d.open(a); err != nil {
		return err
	}
	defer d.a.Close()
	defer d.a.Keep()
	if d.b, err = d.open(b); err != nil {
		return err
	}
	defer d.b.Close()
	defer d.b.Keep()
	var shown *progress
	c := compare.New(d.a, d.b, func(n int) { shown.add(int64(n)) })
	shown = d.progress("diff", c.Size())
	r, err := c.Run()
	shown.end()
	switch {
	case err != nil:
		return err
	case d.json:
		err = d.printJSON(r)
	case !d.quiet:
		err = d.print(r)
	}
	if err == nil && len(r.Differences) > 0 {
		return noAnswer{}
	}
	return err
}

func (d *diffing) print(r *compare.Result) error {
	b := bufio.NewWriter(d.out)
	table := [][]string{{"WHAT", "TENSOR", "DTYPE", "SHAPE", "DIFFERING", "ABS", "REL", "RMS"}}
	counts := map[string]int{}
	for _, x := range r.Differences {
		counts[x.Kind.String()]++
		table = append(table, cells(&x))
	}
	if len(table) > 1 {
		printTable(b, table)
	}
	var parts []string
	for _, kind := range []compare.Kind{compare.Changed, compare.Removed, compare.Added, compare.Renamed} {
		if n := counts[kind.String()]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", humanize.Comma(int64(n)), kind))
		}
	}
	parts = append(parts, humanize.Comma(int64(r.Same))+" the same")
	fmt.Fprintln(b, strings.Join(parts, ", "))
	if r.Same+counts[compare.Changed.String()] == 0 && d.a.Format != d.b.Format {
		fmt.Fprintln(b, "no names agree: --map makes them (--map llama.cpp those of a GGUF)")
	}
	return b.Flush()
}

// cells is a difference as a row of the table.
func cells(d *compare.Difference) []string {
	a, b := d.A, d.B
	switch d.Kind {
	case compare.Removed:
		b = a
	case compare.Added:
		a = b
	}
	row := []string{
		what(d), arrow(printable(a.Name), printable(b.Name)),
		arrow(a.DType.String(), b.DType.String()), arrow(shapeText(a.Shape), shapeText(b.Shape)),
	}
	v := d.Values
	if v == nil {
		return row
	}
	differing := fmt.Sprint(v.Differing)
	if v.Special > 0 {
		differing += fmt.Sprintf(" (%d not finite)", v.Special)
	}
	row = append(row, differing, short(v.MaxAbs), short(v.MaxRel))
	if d.DType() {
		rms := short(v.RMS)
		if v.Within && v.Differing > 0 {
			rms += " rounding"
		}
		row = append(row, rms)
	}
	return row
}

// what names all in which a tensor differs.
func what(d *compare.Difference) string {
	if d.Kind != compare.Changed {
		return d.Kind.String()
	}
	return strings.Join(aspects(d), ", ")
}

func aspects(d *compare.Difference) (list []string) {
	if d.DType() {
		list = append(list, "dtype")
	}
	if d.Shape() {
		list = append(list, "shape")
	}
	if d.Permuted {
		list = append(list, "permuted")
	}
	if d.Values != nil && d.Values.Differing > 0 {
		list = append(list, "values")
	}
	if len(list) == 0 { // -0 and 0, NaN of another kind, a type that is not decoded
		list = append(list, "bytes")
	}
	return list
}

// arrow is a property of both sides.
func arrow(a, b string) string {
	if a == b {
		return a
	}
	return a + " -> " + b
}

func short(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

func (d *diffing) printJSON(r *compare.Result) error {
	list := []any{}
	for _, x := range r.Differences {
		entry := tensor.Object{
			{Key: "kind", Value: x.Kind.String()}, {Key: "a", Value: sideJSON(x.A)}, {Key: "b", Value: sideJSON(x.B)},
		}
		if x.Kind == compare.Changed {
			var differs []any
			for _, word := range aspects(&x) {
				differs = append(differs, word)
			}
			entry = append(entry, tensor.KV{Key: "differs", Value: differs}, tensor.KV{Key: "values", Value: valuesJSON(&x)})
		}
		list = append(list, entry)
	}
	doc := tensor.Object{
		{Key: "schema", Value: 1}, {Key: "a", Value: d.a.Source}, {Key: "b", Value: d.b.Source},
		{Key: "same", Value: r.Same}, {Key: "differences", Value: list},
	}
	_, err := fmt.Fprintf(d.out, "%s\n", tensor.AppendJSON(nil, doc))
	return err
}

func sideJSON(s *compare.Side) any {
	if s == nil {
		return nil
	}
	return tensor.Object{
		{Key: "name", Value: s.Name}, {Key: "dtype", Value: s.DType.String()},
		{Key: "shape", Value: s.Shape}, {Key: "nbytes", Value: s.Bytes},
	}
}

func valuesJSON(d *compare.Difference) any {
	v := d.Values
	if v == nil {
		return nil
	}
	doc := tensor.Object{
		{Key: "differing", Value: v.Differing}, {Key: "not_finite", Value: v.Special},
		{Key: "max_abs", Value: v.MaxAbs}, {Key: "max_rel", Value: v.MaxRel},
	}
	if d.DType() {
		doc = append(doc, tensor.KV{Key: "rms", Value: v.RMS}, tensor.KV{Key: "within_rounding", Value: v.Within})
	}
	return doc
}
