package decode

import (
	"io"
	"slices"
	"strings"

	"weightfs/format/tensor"
)

// A grid lays scales over matrices: one for each block of blockRows by blockCols elements, the last
// of a row or column cut short. Matrices follow one another, and so do their scales.
type grid struct {
	rows, cols           int64
	blockRows, blockCols int64
	scaleRows, scaleCols int64
}

func newGrid(rows, cols, blockRows, blockCols int64) grid {
	return grid{rows, cols, blockRows, blockCols, ceilDiv(rows, blockRows), ceilDiv(cols, blockCols)}
}

func ceilDiv(a, b int64) int64 { return (a-1)/b + 1 }

// fp8Scheme is one byte an element times a scale: by blocks of 128 by 128 (DeepSeek), by runs of 32
// with scales that are powers of two (MXFP8), by rows, by columns, or one scale for the tensor.
// `weight_scale_inv` is the scale itself, whatever its name says.
func fp8Scheme(t tensor.Info, find Lookup, c Config) (Scheme, bool) {
	if !isFloat8(t.DType) || t.DType == tensor.F8_E8M0 {
		return Scheme{}, false
	}
	name, scale, ok := scaleOf(t, find)
	if !ok {
		return Scheme{}, false
	}
	g, ok := fitGrid(t.Shape, scale, c)
	d := scaleType(scale.DType)
	return Scheme{
		Kind: "fp8", Companions: []string{name}, Shape: t.Shape, unit: 1,
		bind: func(primary io.ReaderAt, companions []io.ReaderAt) decoder {
			return scaled{g, t.DType, primary, d, companions[0]}.decode
		},
	}, ok && scalar(d)
}

func isFloat8(d tensor.DType) bool { return scalar(d) && d.Word() == 1 }

// scalar tells whether a type is supported and no block, so that scales can be read one by one.
func scalar(d tensor.DType) bool { return Supported(d) && d.Kind() == tensor.Float }

// scaleOf finds the tensor of scales under the names that compressed-tensors, DeepSeek, Model
// Optimizer and ComfyUI give it.
func scaleOf(t tensor.Info, find Lookup) (name string, scale tensor.Info, ok bool) {
	names := []string{t.Name + "_scale_inv", t.Name + "_scale"}
	if module, ok := strings.CutSuffix(t.Name, ".weight"); ok {
		names = append(names, module+".scale", module+".scale_weight")
	}
	for _, name := range names {
		if scale, _, ok := find(name); ok {
			return name, scale, true
		}
	}
	return "", tensor.Info{}, false
}

// scaleType is the type that a tensor of scales is read as: bytes are exponents.
func scaleType(d tensor.DType) tensor.DType {
	if d == tensor.U8 {
		return tensor.F8_E8M0
	}
	return d
}

// fitGrid finds the one way in which scales of that shape cover a tensor of this one. Where two
// fit, they mean the same.
func fitGrid(shape []uint64, scale tensor.Info, c Config) (grid, bool) {
	elems, err := tensor.Elements(shape)
	if err != nil || elems == 0 || elems > 1<<62 {
		return grid{}, false
	}
	if n, err := tensor.Elements(scale.Shape); err == nil && n == 1 {
		return newGrid(1, int64(elems), 1, int64(elems)), true
	}
	if len(shape) < 2 {
		return grid{}, false
	}
	matrices, rows, cols := shape[:len(shape)-2], int64(shape[len(shape)-2]), int64(shape[len(shape)-1])
	blocks := [][2]int64{{128, 128}, {1, cols}, {rows, 1}, {rows, cols}}
	if c.Block[0] > 0 && c.Block[1] > 0 {
		blocks = append(blocks, c.Block)
	}
	if scaleType(scale.DType) == tensor.F8_E8M0 {
		blocks = append(blocks, [2]int64{1, 32})
	}
	for _, b := range blocks {
		g := newGrid(rows, cols, b[0], b[1])
		fit := append(slices.Clone(matrices), uint64(g.scaleRows), uint64(g.scaleCols))
		if slices.Equal(scale.Shape, fit) || g.scaleCols == 1 && slices.Equal(scale.Shape, fit[:len(fit)-1]) {
			return g, true
		}
	}
	return grid{}, false
}

// scaled decodes elements that are multiplied by the scales of a grid.
type scaled struct {
	grid
	elemType  tensor.DType
	elems     io.ReaderAt
	scaleType tensor.DType
	scales    io.ReaderAt
}

func (z scaled) decode(s *scratch, dst []float32, first int64) error {
	raw, err := s.read(0, z.elems, first, int64(len(dst)))
	if err != nil {
		return err
	}
	Floats(z.elemType, dst, raw)
	for len(dst) > 0 {
		// Rows longer than a chunk go one by one, so that only the scales of the columns that
		// are wanted are read; of shorter ones there may be thousands in a chunk.
		n := int64(len(dst))
		if z.cols > chunk {
			n = min(n, z.cols-first%z.cols)
		}
		if err := z.multiply(s, dst[:n], first); err != nil {
			return err
		}
		dst, first = dst[n:], first+n
	}
	return nil
}

// multiply reads the scales of a run of elements at once, then multiplies block by block.
func (z scaled) multiply(s *scratch, dst []float32, first int64) error {
	last := first + int64(len(dst)) - 1
	from, to := z.scaleRow(first)*z.scaleCols, z.scaleRow(last)*z.scaleCols
	if first/z.cols == last/z.cols {
		from, to = from+first%z.cols/z.blockCols, to+last%z.cols/z.blockCols+1
	} else {
		to += z.scaleCols
	}
	scales, err := s.floats(1, z.scaleType, z.scales, from, to-from)
	if err != nil {
		return err
	}
	for len(dst) > 0 {
		col := first % z.cols
		scale := scales[z.scaleRow(first)*z.scaleCols+col/z.blockCols-from]
		n := min(int64(len(dst)), z.cols-col, z.blockCols-col%z.blockCols)
		for i := range dst[:n] {
			dst[i] *= scale
		}
		dst, first = dst[n:], first+n
	}
	return nil
}

// scaleRow is the row of scales, counted over all matrices, that an element belongs to.
func (g grid) scaleRow(elem int64) int64 {
	row := elem / g.cols
	return row/g.rows*g.scaleRows + row%g.rows/g.blockRows
}
