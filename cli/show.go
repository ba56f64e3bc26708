package cli

import (
	"bufio"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/spf13/cobra"

	"weightfs/format"
	"weightfs/format/decode"
	"weightfs/format/tensor"
)

func (a *app) show() *cobra.Command {
	var f openFlags
	var slice string
	c := &cobra.Command{
		Use:        "show SOURCE TENSOR",
		SuggestFor: []string{"print", "dump", "view"},
		Short:      "Show a tensor's shape and a corner of its values as numbers",
		Long: `Show a tensor's shape and a corner of its values as numbers, decoded where the type is packed.
TENSOR is its name, or a path of the tree that shows it: npy/model/norm.weight.npy.
--slice takes indices, START:STOP:STEP and ... as NumPy does between brackets:

  weightfs show model.gguf blk.0.attn_q.weight --slice 0:2,:8
  weightfs show model.safetensors model.norm.weight --slice ::-1

Of more than 100 elements only the ends of each dimension are shown. All are in what --json prints, in
what cat writes, and in the files of a mount (numpy.load of those in f32/ and npy/).`,
		Args: exactly(2, "SOURCE and a TENSOR"),
		RunE: f.withCheckpoint(func(c *format.Checkpoint, args []string) error {
			return a.runShow(c, args[0], slice)
		}),
		ValidArgsFunction: f.completeTensors(1),
	}
	f.add(c)
	c.Flags().StringVar(&slice, "slice", "", "the part to show: ranges START:STOP:STEP or indices, one for each dimension, with commas between them")
	return c
}

func (a *app) runShow(c *format.Checkpoint, name, slice string) error {
	i, err := findTensor(c, name)
	if err != nil {
		return err
	}
	t := c.Tensor(i)
	part, err := parseSlice(slice, t.Shape)
	if err != nil {
		return err
	}
	if !c.HasValues(i) {
		return failf(exitTrouble, "%s: tensor %q: values of type %s cannot be shown as numbers", c.Source, name, t.DType)
	}
	elements, err := c.Elements(i)
	if err != nil {
		return err
	}
	v := &values{t: t, from: elements}
	b := bufio.NewWriter(a.out)
	if a.json {
		err = v.json(b, part)
	} else {
		v.head(b)
		err = v.print(b, part)
	}
	if err != nil {
		return err
	}
	return b.Flush()
}

// findTensor takes a tensor's name, or the path of a file of the tree that shows it.
func findTensor(c *format.Checkpoint, arg string) (int, error) {
	if i, ok := c.ByName(arg); ok {
		return i, nil
	}
	_, n, err := treePath(c, c.Root(), arg)
	if err != nil {
		return 0, err
	}
	if file, ok := n.(format.TensorFile); ok {
		if i, ok := c.ByName(file.Tensor().Name); ok {
			return i, nil
		}
	}
	return 0, usageError("%s shows no single tensor: name one", arg)
}

// values prints elements of a tensor.
type values struct {
	t     format.Tensor
	from  format.Content
	block []byte // the stored block last read, and its number + 1
	at    int64
}

func (v *values) head(b *bufio.Writer) {
	where := fmt.Sprintf("%s at %d", v.t.Shard.Name, v.t.Extent.Off)
	if v.t.Layout != nil {
		where = fmt.Sprintf("%s (%s)", v.t.Shard.Name, v.t.Layout.Reason())
	}
	fmt.Fprintf(b, "%s  %s %s  %s  %s\n", printable(v.t.Name), v.t.DType, shapeText(v.t.Shape), sizeText(uint64(v.t.Bytes)), printable(where))
}

// element is one element as text.
func (v *values) element(b []byte, i int64) ([]byte, error) {
	elems, size := v.t.DType.Block()
	if n := i/elems + 1; n != v.at {
		size = min(size, v.t.Bytes-(n-1)*size) // a last, partial byte group
		v.block = append(v.block[:0], make([]byte, size)...)
		_, width := v.t.DType.Block()
		if _, err := (format.ContentReader{Content: v.from}).ReadAt(v.block, (n-1)*width); err != nil {
			return b, err
		}
		v.at = n
	}
	return decode.AppendValue(b, v.t.DType, v.block, int(i%elems)), nil
}

const (
	showWhole = 100  // so many elements are shown without leaving any out
	showMost  = 4096 // and never more than about this many
)

// print writes the part as nested brackets, as NumPy prints an array: of long dimensions their ends.
func (v *values) print(b *bufio.Writer, part []span) error {
	edge := uint64(3)
	total := uint64(1)
	for _, s := range part {
		total *= min(s.n, 2*edge)
	}
	if elementsOf(part) <= showWhole {
		edge = showMost
	} else if total > showMost {
		edge = 1
	}
	p := &printer{v: v, part: part, edge: edge, left: showMost}
	if err := p.dim(b, 0, 0); err != nil {
		return err
	}
	return b.WriteByte('\n')
}

// elementsOf is the number of elements of a part, of which the tensor has no fewer.
func elementsOf(part []span) uint64 {
	n := uint64(1)
	for _, s := range part {
		if s.n == 0 {
			return 0
		}
		hi, lo := bits.Mul64(n, s.n)
		if n = lo; hi != 0 {
			n = math.MaxUint64 // a dimension of 0 follows
		}
	}
	return n
}

// A printer writes a part of an array in brackets.
type printer struct {
	v    *values
	part []span
	edge uint64
	left int // elements that may still be written
}

// dim writes dimension d of what lies at flat index base.
func (p *printer) dim(b *bufio.Writer, d int, base uint64) error {
	if d == len(p.part) {
		p.left--
		text, err := p.v.element(nil, int64(base))
		b.Write(text)
		return err
	}
	s := p.part[d]
	stride := p.v.stride(d)
	if s.index {
		return p.dim(b, d+1, base+s.start*stride)
	}
	b.WriteByte('[')
	n := s.n
	for i := uint64(0); i < n; i++ {
		if i > 0 {
			b.WriteString(p.separator(d))
		}
		if i >= p.edge && n > 2*p.edge && i < n-p.edge || p.left <= 0 {
			b.WriteString("...")
			if p.left <= 0 {
				break
			}
			i = n - p.edge - 1
			continue
		}
		if err := p.dim(b, d+1, base+s.at(i)*stride); err != nil {
			return err
		}
	}
	return b.WriteByte(']')
}

// separator stands between the items of dimension d: a new line but for the innermost.
func (p *printer) separator(d int) string {
	depth, inner := 0, true
	for i, s := range p.part {
		if s.index {
			continue
		}
		if i <= d {
			depth++
		} else {
			inner = false
		}
	}
	if inner {
		return " "
	}
	return "\n" + strings.Repeat(" ", depth)
}

// stride is the number of elements from one index of dimension d to the next.
func (v *values) stride(d int) uint64 {
	n := uint64(1)
	for _, dim := range v.t.Shape[d+1:] {
		n *= dim // at most the number of elements, unless one dimension is 0 and nothing is shown
	}
	return n
}

// jsonMost bounds what --json prints of one tensor.
const jsonMost = 1 << 20

func (v *values) json(b *bufio.Writer, part []span) error {
	if n := elementsOf(part); n > jsonMost {
		return usageError("%d elements are too many for --json, the limit is %d: choose some with --slice", n, jsonMost)
	}
	fmt.Fprintf(b, `{"name": %s, "dtype": "%s", "shape": %s, "values": `, tensor.AppendString(nil, v.t.Name), v.t.DType, tensor.AppendShape(nil, v.t.Shape))
	if err := v.jsonDim(b, part, 0, 0); err != nil {
		return err
	}
	_, err := b.WriteString("}\n")
	return err
}

func (v *values) jsonDim(b *bufio.Writer, part []span, d int, base uint64) error {
	if d == len(part) {
		text, err := v.element(nil, int64(base))
		if err != nil {
			return err
		}
		b.Write(jsonNumber(text, v.t.DType))
		return nil
	}
	s, stride := part[d], v.stride(d)
	if s.index {
		return v.jsonDim(b, part, d+1, base+s.start*stride)
	}
	b.WriteByte('[')
	for i := range s.n {
		if i > 0 {
			b.WriteString(", ")
		}
		if err := v.jsonDim(b, part, d+1, base+s.at(i)*stride); err != nil {
			return err
		}
	}
	return b.WriteByte(']')
}

// jsonNumber quotes what JSON has no number for: NaN, infinities, complex numbers.
func jsonNumber(text []byte, d tensor.DType) []byte {
	s := string(text)
	switch {
	case d.Kind() == tensor.Complex, strings.ContainsAny(s, "NIni"):
		return tensor.AppendString(nil, s)
	}
	return text
}
