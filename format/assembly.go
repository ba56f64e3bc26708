package format

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"sync"
	"unicode/utf8"

	"weightfs/format/index"
	"weightfs/format/tensor"
)

// An assembly is all tensors below a directory as one safetensors file that is stored nowhere: a
// header made on read, and the tensors' own ranges, each name with a range of its own. parts/ and
// assembled/ are made of it.
//
// The tensors stand by falling alignment and then in the order of the files, so that every one is
// aligned to its type (PyTorch asks for that) and a copy reads the shards from front to back.
type assembly struct {
	c      *Checkpoint
	order  []uint32
	ends   []int64  // of the tensors in the byte buffer
	prefix []byte   // the length of the header
	made   sync.Map // the segments of tensors that are produced: a reader has a state worth keeping
	header *rendering
}

func (c *Checkpoint) assemble(node uint32) *assembly {
	a := &assembly{c: c}
	c.index.Below(node, func(t uint32) bool {
		a.order = append(a.order, t)
		return true
	})
	x := c.index
	slices.SortStableFunc(a.order, func(s, t uint32) int {
		r, q := &x.Records[s], &x.Records[t]
		return cmp.Or(c.alignment(t)-c.alignment(s), cmp.Compare(r.File, q.File), cmp.Compare(r.Off, q.Off), cmp.Compare(s, t))
	})
	var end int64
	a.ends = make([]int64, len(a.order))
	for i, t := range a.order {
		_, _, size := c.stored(t)
		end += size
		a.ends[i] = end
	}
	a.header = newRendering(len(a.order)+2, a.appendHeader)
	a.prefix = binary.LittleEndian.AppendUint64(nil, uint64(pad8(a.header.Size())))
	return a
}

// stored is a tensor as it stands in an assembled file. A type that safetensors lacks is U8 with
// its byte shape, or with --as-safetensors=f32 decoded.
func (c *Checkpoint) stored(t uint32) (dtype string, shape []uint64, size int64) {
	r := &c.index.Records[t]
	d, shape := tensor.DType(r.DType), c.index.Shape(t)
	if inSafetensors(d) {
		return d.String(), shape, r.Bytes
	}
	if c.decodes(t) {
		shape = c.floatShape(t)
		return "F32", shape, 4 * count(shape)
	}
	if d.Packed() {
		return "U8", d.ByteShape(shape, r.Bytes), r.Bytes
	}
	_, width := d.Block()
	return "U8", append(slices.Clone(shape), uint64(width)), r.Bytes
}

// inSafetensors tells whether safetensors has the type.
func inSafetensors(d tensor.DType) bool {
	return d.Valid() && d <= tensor.F6_E3M2 && d != tensor.C128
}

func (c *Checkpoint) decodes(t uint32) bool {
	return c.opt.AsF32 && c.index.Nodes[c.index.Records[t].Node].Flags&flagF32 != 0
}

func (c *Checkpoint) alignment(t uint32) int {
	d := tensor.DType(c.index.Records[t].DType)
	switch {
	case c.decodes(t) && !inSafetensors(d):
		return 4
	case !inSafetensors(d):
		return 1
	}
	return max(d.Word(), 1)
}

// appendHeader renders a piece of the header: the metadata, a tensor, or the end.
func (a *assembly) appendHeader(b []byte, i int) []byte {
	switch {
	case i == 0:
		return a.appendMeta(b)
	case i == len(a.order)+1:
		return append(b, '}')
	}
	t := a.order[i-1]
	dtype, shape, size := a.c.stored(t)
	b = append(b, ", "...)
	b = tensor.AppendString(b, a.c.storedName(t))
	b = append(b, `: {"dtype": "`...)
	b = append(b, dtype...)
	b = append(b, `", "shape": `...)
	b = tensor.AppendShape(b, shape)
	b = append(b, `, "data_offsets": `...)
	b = tensor.AppendJSON(b, []int64{a.ends[i-1] - size, a.ends[i-1]})
	return append(b, '}')
}

// storedName is a tensor's name in an assembled file: JSON has no bytes that are not UTF-8, and
// `__metadata__` is taken.
func (c *Checkpoint) storedName(t uint32) string {
	name := c.index.Name(t)
	if utf8.ValidString(name) && name != metadataKey {
		return name
	}
	stored := index.Flat(name)
	for n := 2; ; n++ {
		if _, taken := c.index.Tensor(stored); !taken && stored != metadataKey {
			return stored
		}
		stored = fmt.Sprintf("%s~%d", index.Flat(name), n)
	}
}

const metadataKey = "__metadata__"

// metaArrayMax bounds the arrays that an assembled file takes over: a vocabulary is not metadata.
const metaArrayMax = 64

// appendMeta renders `__metadata__`, in which every value is a string: the checkpoint's own, and the
// types of the tensors that are there as bytes.
func (a *assembly) appendMeta(b []byte) []byte {
	b = append(b, `{"__metadata__": {`...)
	hasFormat := false
	for _, kv := range a.c.Meta() {
		text, ok := metaText(kv.Value)
		if !ok {
			continue
		}
		hasFormat = hasFormat || kv.Key == "format"
		b = appendMember(b, kv.Key, text)
	}
	if !hasFormat {
		b = appendMember(b, "format", "pt")
	}
	for _, t := range a.order {
		d := tensor.DType(a.c.index.Records[t].DType)
		if !inSafetensors(d) && !a.c.decodes(t) {
			shape := tensor.AppendShape(nil, a.c.index.Shape(t))
			b = appendMember(b, "weightfs.dtype."+a.c.storedName(t), d.String()+" "+string(shape))
		}
	}
	return append(b, '}')
}

func appendMember(b []byte, key, text string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ", "...)
	}
	b = tensor.AppendString(b, key)
	b = append(b, ": "...)
	return tensor.AppendString(b, text)
}

// metaText is a value of the metadata as a string; long arrays stay out.
func metaText(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case []any:
		if len(v) > metaArrayMax {
			return "", false
		}
	case tensor.Lazy:
		return "", false
	}
	return string(tensor.AppendJSON(nil, value)), true
}

func pad8(n int64) int64 { return (n + 7) &^ 7 }

// headEnd is where the byte buffer begins.
func (a *assembly) headEnd() int64 { return int64(len(a.prefix)) + pad8(a.header.Size()) }

// Size implements Content.
func (a *assembly) Size() int64 {
	if n := len(a.ends); n > 0 {
		return a.headEnd() + a.ends[n-1]
	}
	return a.headEnd()
}

// Segment implements Content.
func (a *assembly) Segment(off int64) (Segment, int64) {
	head := a.headEnd()
	if off < head {
		padding := head - int64(len(a.prefix)) - a.header.Size()
		list := newSegments(Literal(a.prefix), a.header.segment(), Literal([]byte("        "[:padding])))
		return list.Segment(off)
	}
	i := a.at(off - head)
	t := a.order[i]
	_, _, size := a.c.stored(t)
	return a.segment(t, size), head + a.ends[i] - size
}

// at is the tensor that holds a byte of the buffer.
func (a *assembly) at(off int64) int {
	return sort.Search(len(a.ends), func(i int) bool { return a.ends[i] > off })
}

// TensorAt implements Spanning.
func (a *assembly) TensorAt(off int64) string {
	i := a.at(off - a.headEnd())
	if off < a.headEnd() || i == len(a.order) {
		return ""
	}
	return a.c.index.Name(a.order[i])
}

func (a *assembly) segment(t uint32, size int64) Segment {
	if seg, ok := a.made.Load(t); ok {
		return seg.(Segment)
	}
	seg, err := a.c.storedElements(t)
	if err != nil {
		seg = Produced(failing{err}, size)
	}
	if seg.Reader != nil {
		a.made.Store(t, seg)
	}
	return seg
}

// storedElements is a tensor's segment in an assembled file.
func (c *Checkpoint) storedElements(t uint32) (Segment, error) {
	if inSafetensors(tensor.DType(c.index.Records[t].DType)) || !c.decodes(t) {
		return c.elements(t)
	}
	return c.floats(t)
}

// failing is a producer that cannot produce.
type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

// open checks the shards of the tensors in it.
func (a *assembly) open() (Content, error) {
	var shards []*Shard
	seen := make([]bool, len(a.c.Shards))
	for _, t := range a.order {
		if f := a.c.index.Records[t].File; !seen[f] {
			seen[f] = true
			shards = append(shards, a.c.Shards[f])
		}
	}
	if err := a.c.fresh(shards...); err != nil {
		return nil, err
	}
	return a, nil
}

// assemblyFile is an assembly as a file: its size is known once it has been looked up, and the lists
// are made again when it is opened.
func (c *Checkpoint) assemblyFile(ino uint64, node uint32) *fileNode {
	size := c.assemble(node).Size()
	return &fileNode{
		stat: c.fileStat(c.spanning, ino, size),
		open: func() (Content, error) { return c.assemble(node).open() },
	}
}
