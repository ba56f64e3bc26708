package decode

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"weightfs/format/tensor"
)

// Integer weights of GPTQ and AWQ are (q - zero) * scale, where zero and scale are of a column and a
// group of rows. A matrix is stored with the inputs as rows: [in, out], the transpose of PyTorch's
// weight, and it is decoded as it is stored.

// gptqScheme is `qweight` [in*bits/32, out], whose words hold bits of successive rows, with `qzeros`
// [groups, out*bits/32], `scales` [groups, out] and `g_idx` [in], the group of each row. Zeros are
// stored less one unless the configuration says `gptq_v2`; without a configuration that cannot be
// known, and nothing is decoded. Values of 3 bits cross words and are left out.
func gptqScheme(t tensor.Info, find Lookup, c Config) (Scheme, bool) {
	module, ok := strings.CutSuffix(t.Name, "qweight")
	if !ok || c.Method != "gptq" || len(t.Shape) != 2 || t.DType != tensor.I32 {
		return Scheme{}, false
	}
	less, ok := map[string]byte{"": 1, "gptq": 1, "gptq_v2": 0}[c.Format]
	names := []string{module + "qzeros", module + "scales", module + "g_idx"}
	zeros, _, ok1 := find(names[0])
	scales, _, ok2 := find(names[1])
	index, _, ok3 := find(names[2])
	if !ok || !ok1 || !ok2 || !ok3 || len(index.Shape) != 1 || len(scales.Shape) != 2 || !scalar(scales.DType) {
		return Scheme{}, false
	}
	in, out, groups := index.Shape[0], t.Shape[1], scales.Shape[0]
	for _, bits := range []uint64{2, 4, 8} {
		perWord := 32 / bits
		if in%perWord != 0 || out%perWord != 0 || t.Shape[0] != in/perWord {
			continue
		}
		ok := zeros.DType == tensor.I32 && index.DType == tensor.I32 &&
			slices.Equal(zeros.Shape, []uint64{groups, out / perWord}) && slices.Equal(scales.Shape, []uint64{groups, out})
		return Scheme{
			Kind: "gptq", Companions: names, Shape: []uint64{in, out}, unit: 1,
			bind: func(primary io.ReaderAt, companions []io.ReaderAt) decoder {
				return gptq{
					out: int64(out), groups: int64(groups), bits: int64(bits), less: less, scaleType: scales.DType,
					weights: primary, zeros: companions[0], scales: companions[1], index: companions[2],
				}.decode
			},
		}, ok
	}
	return Scheme{}, false
}

type gptq struct {
	out, groups, bits             int64
	less                          byte
	scaleType                     tensor.DType
	weights, zeros, scales, index io.ReaderAt
}

func (z gptq) decode(s *scratch, dst []float32, first int64) error {
	for len(dst) > 0 {
		row, col := first/z.out, first%z.out
		n := min(int64(len(dst)), z.out-col)
		if err := z.row(s, dst[:n], row, col); err != nil {
			return err
		}
		dst, first = dst[n:], first+n
	}
	return nil
}

// row decodes a part of one row.
func (z gptq) row(s *scratch, dst []float32, row, col int64) error {
	index, err := s.read(0, z.index, 4*row, 4)
	if err != nil {
		return err
	}
	group := int64(int32(le.Uint32(index)))
	if group < 0 || group >= z.groups {
		return fmt.Errorf("decode: row %d is of group %d, but there are %d groups", row, group, z.groups)
	}
	n, perWord := int64(len(dst)), 32/z.bits
	weights, err := s.read(0, z.weights, 4*(row/perWord*z.out+col), 4*n)
	if err != nil {
		return err
	}
	word, last := col/perWord, (col+n-1)/perWord
	zeros, err := s.read(1, z.zeros, 4*(group*(z.out/perWord)+word), 4*(last-word+1))
	if err != nil {
		return err
	}
	scales, err := s.floats(0, z.scaleType, z.scales, group*z.out+col, n)
	if err != nil {
		return err
	}
	shift, mask := row%perWord*z.bits, byte(1<<z.bits-1)
	for i := range dst {
		at := col + int64(i)
		q := byte(le.Uint32(weights[4*i:])>>shift) & mask
		zero := byte(le.Uint32(zeros[4*(at/perWord-word):])>>(at%perWord*z.bits)) + z.less
		dst[i] = float32(int(q)-int(zero&mask)) * scales[i]
	}
	return nil
}

// awqScheme is `qweight` [in, out/8], whose words hold eight columns in the order of awqShift, with
// `qzeros` [groups, out/8] in the same order and `scales` [groups, out]; groups are of equally many
// rows. It is the layout that AutoAWQ calls gemm; the others have other shapes.
func awqScheme(t tensor.Info, find Lookup, _ Config) (Scheme, bool) {
	module, ok := strings.CutSuffix(t.Name, "qweight")
	if !ok || len(t.Shape) != 2 || t.DType != tensor.I32 {
		return Scheme{}, false
	}
	names := []string{module + "qzeros", module + "scales"}
	zeros, _, ok1 := find(names[0])
	scales, _, ok2 := find(names[1])
	if !ok1 || !ok2 || len(scales.Shape) != 2 || !scalar(scales.DType) || zeros.DType != tensor.I32 {
		return Scheme{}, false
	}
	in, words, groups := t.Shape[0], t.Shape[1], scales.Shape[0]
	ok = groups > 0 && in%groups == 0 && scales.Shape[1] == 8*words && slices.Equal(zeros.Shape, []uint64{groups, words})
	return Scheme{
		Kind: "awq", Companions: names, Shape: []uint64{in, 8 * words}, unit: 8,
		bind: func(primary io.ReaderAt, companions []io.ReaderAt) decoder {
			return awq{
				out: int64(8 * words), perGroup: int64(in / groups), scaleType: scales.DType,
				weights: primary, zeros: companions[0], scales: companions[1],
			}.decode
		},
	}, ok
}

// awqShift is where a word holds each of its eight columns.
var awqShift = [8]int{0, 16, 4, 20, 8, 24, 12, 28}

type awq struct {
	out, perGroup          int64
	scaleType              tensor.DType
	weights, zeros, scales io.ReaderAt
}

func (z awq) decode(s *scratch, dst []float32, first int64) error {
	weights, err := s.read(0, z.weights, first/2, int64(len(dst))/2)
	if err != nil {
		return err
	}
	for len(dst) > 0 {
		group, col := first/z.out/z.perGroup, first%z.out
		n := min(int64(len(dst)), z.out-col)
		zeros, err := s.read(1, z.zeros, (group*z.out+col)/2, n/2)
		if err != nil {
			return err
		}
		scales, err := s.floats(0, z.scaleType, z.scales, group*z.out+col, n)
		if err != nil {
			return err
		}
		for i := 0; i < int(n); i += 8 {
			q, zero := le.Uint32(weights[i/2:]), le.Uint32(zeros[i/2:])
			for j, shift := range awqShift {
				dst[i+j] = float32(int(q>>shift&15)-int(zero>>shift&15)) * scales[i+j]
			}
		}
		dst, weights, first = dst[n:], weights[n/2:], first+n
	}
	return nil
}
