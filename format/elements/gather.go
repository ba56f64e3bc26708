package elements

import (
	"cmp"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"sync"

	"weightfs/format/tensor"
)

const (
	// window bounds what one pread takes through a buffer.
	window = 256 << 10
	// gap is how many bytes between two wanted ones are read along with them: about as many as are
	// copied in the time of a system call.
	gap = 4 << 10
)

var windows = sync.Pool{New: func() any { return new([window]byte) }}

// An axis is one dimension of a box of elements: how many, and the distance in bytes from one to
// the next in the storage and in the row-major output.
type axis struct{ n, src, dst int64 }

// A gather collects strided elements in row-major order.
type gather struct {
	storage  io.ReaderAt
	elem     int64
	size     int64  // of the output
	axes     []axis // row-major; none of one element, none that continues the one before
	inBlocks bool
}

// newGather checks that all elements lie within the storage of size bytes.
func newGather(storage io.ReaderAt, size int64, t *tensor.Info) (*gather, error) {
	elems, elem := t.DType.Block()
	strides := t.Layout.Strides
	if elems != 1 || elem > 16 || len(strides) != len(t.Shape) {
		return nil, fmt.Errorf("%w: strides %v of %s %v", tensor.ErrUnsupported, strides, t.DType, t.Shape)
	}
	want, err := t.DType.Size(t.Shape, false)
	if err != nil {
		return nil, err
	}
	if want != t.Bytes {
		return nil, fmt.Errorf("%w: %s %v takes %d bytes, not %d", tensor.ErrMalformed, t.DType, t.Shape, want, t.Bytes)
	}
	g := &gather{storage: storage, elem: elem, size: want}
	if want == 0 {
		return g, nil
	}
	last := uint64(0) // index of the last element in the storage
	for i, n := range t.Shape {
		hi, lo := bits.Mul64(n-1, uint64(strides[i]))
		sum, carry := bits.Add64(last, lo, 0)
		if strides[i] < 0 || hi|carry != 0 || sum >= uint64(size/elem) {
			return nil, fmt.Errorf("%w: strides %v of %s %v leave the storage of %d bytes",
				tensor.ErrMalformed, strides, t.DType, t.Shape, size)
		}
		last = sum
	}
	if size < elem {
		return nil, fmt.Errorf("%w: a storage of %d bytes for an element of %d", tensor.ErrMalformed, size, elem)
	}
	g.axes = mergeAxes(t.Shape, strides, elem)
	g.inBlocks = g.scattered(want)
	return g, nil
}

// mergeAxes drops dimensions of one element and joins those that are walked as one.
func mergeAxes(shape []uint64, strides []int64, elem int64) []axis {
	var axes []axis
	for i, dim := range shape {
		n, src := int64(dim), strides[i]*elem
		if n == 1 {
			continue
		}
		if k := len(axes) - 1; k >= 0 && axes[k].src == n*src {
			axes[k] = axis{n: axes[k].n * n, src: src}
			continue
		}
		axes = append(axes, axis{n: n, src: src})
	}
	dst := elem
	for i := len(axes) - 1; i >= 0; i-- {
		axes[i].dst = dst
		dst *= axes[i].n
	}
	return axes
}

// full fills p with the elements at byte off of the output; both are whole elements.
func (g *gather) full(p []byte, off int64) error {
	if g.inBlocks && len(p) < blockSize {
		return g.blocks(p, off)
	}
	return g.span(p, g.axes, off, 0)
}

// span cuts a range of the output into boxes: the rest of a begun row, whole rows, the beginning of
// a last one, each in turn over the axes that are left. src is where the axes begin in the storage.
func (g *gather) span(p []byte, axes []axis, off, src int64) error {
	if len(axes) == 0 {
		return g.box(p, nil, src)
	}
	a := axes[0]
	src += off / a.dst * a.src
	if within := off % a.dst; within > 0 {
		n := min(int64(len(p)), a.dst-within)
		if err := g.span(p[:n], axes[1:], within, src); err != nil {
			return err
		}
		p, src = p[n:], src+a.src
	}
	if whole := int64(len(p)) / a.dst; whole > 0 {
		rows := slices.Clone(axes)
		rows[0].n = whole
		sortAxes(rows)
		if err := g.box(p[:whole*a.dst], rows, src); err != nil {
			return err
		}
		p, src = p[whole*a.dst:], src+whole*a.src
	}
	if len(p) == 0 {
		return nil
	}
	return g.span(p, axes[1:], 0, src)
}

// sortAxes puts axes into the order of the storage, the widest stride first.
func sortAxes(axes []axis) {
	slices.SortStableFunc(axes, func(a, b axis) int { return cmp.Compare(b.src, a.src) })
}

// box fills p from a box of the storage, whose axes are in the order of the storage. What one pread
// can take becomes a tile, so do many small ones that lie apart; the rest is walked along the first
// axis.
func (g *gather) box(p []byte, axes []axis, src int64) error {
	for len(axes) > 0 && axes[0].n == 1 {
		axes = axes[1:]
	}
	if len(axes) == 0 {
		return g.read(p[:g.elem], src)
	}
	a := axes[0]
	if len(axes) == 1 && a.src == g.elem && a.dst == g.elem {
		return g.read(p[:a.n*g.elem], src)
	}
	inner, dense := g.extent(axes[1:])
	step := a.step(inner, dense)
	apart := step == 1 && dense && inner <= gap
	if apart {
		step = window / inner
	}
	if step >= a.n {
		return g.tile(p, axes, src, apart)
	}
	for i := int64(0); i < a.n; i += step {
		axes[0].n = min(step, a.n-i)
		if err := g.box(p[i*a.dst:], axes, src+i*a.src); err != nil {
			return err
		}
	}
	axes[0] = a
	return nil
}

// extent is how many bytes of the storage a box spans, and whether it is worth reading as one.
func (g *gather) extent(axes []axis) (n int64, dense bool) {
	n, dense = g.elem, true
	for _, a := range slices.Backward(axes) {
		dense = dense && a.src-n <= gap
		n += (a.n - 1) * a.src
	}
	return n, dense && n <= window
}

// step is how many along a, each a box that spans inner bytes, one pread takes: those that fit in a
// window with small gaps, but at least one.
func (a axis) step(inner int64, dense bool) int64 {
	switch {
	case !dense || a.src-inner > gap:
		return 1
	case a.src == 0:
		return a.n
	}
	return (window-inner)/a.src + 1
}

// tile reads what a box spans into a window and takes the elements from there. What lies apart
// along the first axis is read one by one and put together.
func (g *gather) tile(p []byte, axes []axis, src int64, apart bool) error {
	buf := windows.Get().(*[window]byte)
	defer windows.Put(buf)
	axes = slices.Clone(axes)
	n, each := int64(1), int64(0)
	if apart {
		n, each = axes[0].n, axes[0].src
		axes[0].src, _ = g.extent(axes[1:])
	}
	extent, _ := g.extent(axes)
	size := extent / n
	for i := range n {
		if err := g.read(buf[i*size:(i+1)*size], src+i*each); err != nil {
			return err
		}
	}
	slices.SortStableFunc(axes, func(a, b axis) int { return cmp.Compare(b.dst, a.dst) })
	g.scatter(p, buf[:extent], axes)
	return nil
}

func (g *gather) read(p []byte, src int64) error { return tensor.ReadFull(g.storage, p, src) }

func (g *gather) scatter(dst, src []byte, axes []axis) {
	a := axes[0]
	if len(axes) == 1 {
		g.line(dst, src, a)
		return
	}
	for i := range a.n {
		g.scatter(dst[i*a.dst:], src[i*a.src:], axes[1:])
	}
}

// line copies the elements along one axis. The widths are written out because a copy of unknown
// length is a call for each element.
func (g *gather) line(dst, src []byte, a axis) {
	d, s := int64(0), int64(0)
	switch {
	case a.src == g.elem && a.dst == g.elem:
		copy(dst[:a.n*g.elem], src)
	case g.elem == 1:
		for range a.n {
			dst[d] = src[s]
			d, s = d+a.dst, s+a.src
		}
	case g.elem == 2:
		for range a.n {
			*(*[2]byte)(dst[d:]) = [2]byte(src[s:])
			d, s = d+a.dst, s+a.src
		}
	case g.elem == 4:
		for range a.n {
			*(*[4]byte)(dst[d:]) = [4]byte(src[s:])
			d, s = d+a.dst, s+a.src
		}
	case g.elem == 8:
		for range a.n {
			*(*[8]byte)(dst[d:]) = [8]byte(src[s:])
			d, s = d+a.dst, s+a.src
		}
	default:
		for range a.n {
			copy(dst[d:d+g.elem], src[s:])
			d, s = d+a.dst, s+a.src
		}
	}
}
