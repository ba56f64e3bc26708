package tensor

import (
	"fmt"
	"math/bits"
)

// A DType is the element type of a tensor: an index into one vocabulary over all formats. It is
// safetensors' name where safetensors has one, else ggml's, else a name in the same manner (C128, I4).
// The zero DType is not a type. Values are stored in the persisted index: append, never reorder.
type DType uint8

// Kind says how the bits of an element are to be read.
type Kind uint8

// The kinds. A Block is a ggml block: elements share scales and cannot be told apart by byte.
const (
	Bool Kind = iota + 1
	Int
	Uint
	Float
	Complex
	Block
)

// The element types, in the order of their table rows.
const (
	BOOL DType = iota + 1
	U8
	I8
	U16
	I16
	U32
	I32
	U64
	I64
	F16
	BF16
	F32
	F64
	C64
	C128
	F8_E4M3
	F8_E5M2
	F8_E4M3FNUZ
	F8_E5M2FNUZ
	F8_E8M0
	F4
	F6_E2M3
	F6_E3M2
	I4
	U4
	I2
	U2
	C32
	Q4_0
	Q4_1
	Q5_0
	Q5_1
	Q8_0
	Q8_1
	Q2_K
	Q3_K
	Q4_K
	Q5_K
	Q6_K
	Q8_K
	IQ2_XXS
	IQ2_XS
	IQ3_XXS
	IQ1_S
	IQ4_NL
	IQ3_S
	IQ2_S
	IQ4_XS
	IQ1_M
	TQ1_0
	TQ2_0
	MXFP4
	NVFP4
	Q1_0
	Q2_0
	Q4_0_4_4
	Q4_0_4_8
	Q4_0_8_8
	IQ4_NL_4_4
	IQ4_NL_4_8
	IQ4_NL_8_8
	Q6_0
	IQ1_BN
	IQ2_BN
	IQ2_K
	IQ3_K
	IQ4_K
	IQ5_K
	IQ6_K
	IQ4_KS
	IQ2_KT
	IQ2_KS
	IQ4_KSS
	IQ5_KS
	IQ3_KT
	IQ4_KT
	IQ3_KS
	IQ2_KL
	IQ1_KT
	dtypeEnd
)

// dtypeRow is what is known of one element type: Elems elements are stored in Bytes bytes.
type dtypeRow struct {
	name         string
	kind         Kind
	elems, bytes int64
	rowBytes     int64  // constant bytes in front of every row (ik_llama.cpp's BN, KS, KL and KT types)
	descr        string // NumPy's array-protocol string; empty where the npy view shows packed bytes
	torch        string
	word         int // bytes that a big-endian file reverses together; 0 for packed types
}

// The sizes of ggml's types are the static asserts of its C source; those of the last group are
// ik_llama.cpp's and of removed types, known from public code only.
var dtypes = [dtypeEnd]dtypeRow{
	BOOL:        {"BOOL", Bool, 1, 1, 0, "|b1", "bool", 1},
	U8:          {"U8", Uint, 1, 1, 0, "|u1", "uint8", 1},
	I8:          {"I8", Int, 1, 1, 0, "|i1", "int8", 1},
	U16:         {"U16", Uint, 1, 2, 0, "<u2", "uint16", 2},
	I16:         {"I16", Int, 1, 2, 0, "<i2", "int16", 2},
	U32:         {"U32", Uint, 1, 4, 0, "<u4", "uint32", 4},
	I32:         {"I32", Int, 1, 4, 0, "<i4", "int32", 4},
	U64:         {"U64", Uint, 1, 8, 0, "<u8", "uint64", 8},
	I64:         {"I64", Int, 1, 8, 0, "<i8", "int64", 8},
	F16:         {"F16", Float, 1, 2, 0, "<f2", "float16", 2},
	BF16:        {"BF16", Float, 1, 2, 0, "<V2", "bfloat16", 2},
	F32:         {"F32", Float, 1, 4, 0, "<f4", "float32", 4},
	F64:         {"F64", Float, 1, 8, 0, "<f8", "float64", 8},
	C64:         {"C64", Complex, 1, 8, 0, "<c8", "complex64", 4},
	C128:        {"C128", Complex, 1, 16, 0, "<c16", "complex128", 8},
	F8_E4M3:     {"F8_E4M3", Float, 1, 1, 0, "<V1", "float8_e4m3fn", 1},
	F8_E5M2:     {"F8_E5M2", Float, 1, 1, 0, "<V1", "float8_e5m2", 1},
	F8_E4M3FNUZ: {"F8_E4M3FNUZ", Float, 1, 1, 0, "<V1", "float8_e4m3fnuz", 1},
	F8_E5M2FNUZ: {"F8_E5M2FNUZ", Float, 1, 1, 0, "<V1", "float8_e5m2fnuz", 1},
	F8_E8M0:     {"F8_E8M0", Float, 1, 1, 0, "<V1", "float8_e8m0fnu", 1},
	F4:          {"F4", Float, 2, 1, 0, "", "float4_e2m1fn_x2", 1},
	F6_E2M3:     {"F6_E2M3", Float, 4, 3, 0, "", "", 1},
	F6_E3M2:     {"F6_E3M2", Float, 4, 3, 0, "", "", 1},
	I4:          {"I4", Int, 2, 1, 0, "", "", 1},
	U4:          {"U4", Uint, 2, 1, 0, "", "", 1},
	I2:          {"I2", Int, 4, 1, 0, "", "", 1},
	U2:          {"U2", Uint, 4, 1, 0, "", "", 1},
	C32:         {"C32", Complex, 1, 4, 0, "<V4", "complex32", 2},
	Q4_0:        {"Q4_0", Block, 32, 18, 0, "", "", 0},
	Q4_1:        {"Q4_1", Block, 32, 20, 0, "", "", 0},
	Q5_0:        {"Q5_0", Block, 32, 22, 0, "", "", 0},
	Q5_1:        {"Q5_1", Block, 32, 24, 0, "", "", 0},
	Q8_0:        {"Q8_0", Block, 32, 34, 0, "", "", 0},
	Q8_1:        {"Q8_1", Block, 32, 36, 0, "", "", 0},
	Q2_K:        {"Q2_K", Block, 256, 84, 0, "", "", 0},
	Q3_K:        {"Q3_K", Block, 256, 110, 0, "", "", 0},
	Q4_K:        {"Q4_K", Block, 256, 144, 0, "", "", 0},
	Q5_K:        {"Q5_K", Block, 256, 176, 0, "", "", 0},
	Q6_K:        {"Q6_K", Block, 256, 210, 0, "", "", 0},
	Q8_K:        {"Q8_K", Block, 256, 292, 0, "", "", 0},
	IQ2_XXS:     {"IQ2_XXS", Block, 256, 66, 0, "", "", 0},
	IQ2_XS:      {"IQ2_XS", Block, 256, 74, 0, "", "", 0},
	IQ3_XXS:     {"IQ3_XXS", Block, 256, 98, 0, "", "", 0},
	IQ1_S:       {"IQ1_S", Block, 256, 50, 0, "", "", 0},
	IQ4_NL:      {"IQ4_NL", Block, 32, 18, 0, "", "", 0},
	IQ3_S:       {"IQ3_S", Block, 256, 110, 0, "", "", 0},
	IQ2_S:       {"IQ2_S", Block, 256, 82, 0, "", "", 0},
	IQ4_XS:      {"IQ4_XS", Block, 256, 136, 0, "", "", 0},
	IQ1_M:       {"IQ1_M", Block, 256, 56, 0, "", "", 0},
	TQ1_0:       {"TQ1_0", Block, 256, 54, 0, "", "", 0},
	TQ2_0:       {"TQ2_0", Block, 256, 66, 0, "", "", 0},
	MXFP4:       {"MXFP4", Block, 32, 17, 0, "", "", 0},
	NVFP4:       {"NVFP4", Block, 64, 36, 0, "", "", 0},
	Q1_0:        {"Q1_0", Block, 128, 18, 0, "", "", 0},
	Q2_0:        {"Q2_0", Block, 64, 18, 0, "", "", 0},
	Q4_0_4_4:    {"Q4_0_4_4", Block, 32, 18, 0, "", "", 0},
	Q4_0_4_8:    {"Q4_0_4_8", Block, 32, 18, 0, "", "", 0},
	Q4_0_8_8:    {"Q4_0_8_8", Block, 32, 18, 0, "", "", 0},
	IQ4_NL_4_4:  {"IQ4_NL_4_4", Block, 32, 18, 0, "", "", 0},
	IQ4_NL_4_8:  {"IQ4_NL_4_8", Block, 32, 18, 0, "", "", 0},
	IQ4_NL_8_8:  {"IQ4_NL_8_8", Block, 32, 18, 0, "", "", 0},
	Q6_0:        {"Q6_0", Block, 32, 26, 0, "", "", 0},
	IQ1_BN:      {"IQ1_BN", Block, 64, 13, 2, "", "", 0},
	IQ2_BN:      {"IQ2_BN", Block, 64, 16, 4, "", "", 0},
	IQ2_K:       {"IQ2_K", Block, 256, 76, 0, "", "", 0},
	IQ3_K:       {"IQ3_K", Block, 256, 110, 0, "", "", 0},
	IQ4_K:       {"IQ4_K", Block, 256, 144, 0, "", "", 0},
	IQ5_K:       {"IQ5_K", Block, 256, 176, 0, "", "", 0},
	IQ6_K:       {"IQ6_K", Block, 256, 212, 0, "", "", 0},
	IQ4_KS:      {"IQ4_KS", Block, 256, 136, 4, "", "", 0},
	IQ2_KT:      {"IQ2_KT", Block, 256, 68, 4, "", "", 0},
	IQ2_KS:      {"IQ2_KS", Block, 256, 70, 2, "", "", 0},
	IQ4_KSS:     {"IQ4_KSS", Block, 256, 128, 4, "", "", 0},
	IQ5_KS:      {"IQ5_KS", Block, 256, 168, 4, "", "", 0},
	IQ3_KT:      {"IQ3_KT", Block, 256, 100, 4, "", "", 0},
	IQ4_KT:      {"IQ4_KT", Block, 256, 128, 4, "", "", 0},
	IQ3_KS:      {"IQ3_KS", Block, 256, 102, 2, "", "", 0},
	IQ2_KL:      {"IQ2_KL", Block, 256, 86, 2, "", "", 0},
	IQ1_KT:      {"IQ1_KT", Block, 256, 56, 4, "", "", 0},
}

// Valid tells whether d is a type of the table.
func (d DType) Valid() bool { return d > 0 && d < dtypeEnd }

// String is the type's one name in tensors.json.
func (d DType) String() string {
	if !d.Valid() {
		return fmt.Sprintf("DType(%d)", uint8(d))
	}
	return dtypes[d].name
}

// Kind says how the type's bits are read; zero for a type that is not in the table.
func (d DType) Kind() Kind { return dtypes[d%dtypeEnd].kind }

// Block is the smallest whole unit: elems elements in bytes bytes. (1, 2) for F16, (256, 144) for Q4_K.
func (d DType) Block() (elems, bytes int64) {
	return dtypes[d%dtypeEnd].elems, dtypes[d%dtypeEnd].bytes
}

// Packed tells that an element is not a whole number of bytes, so that NumPy is shown bytes.
func (d DType) Packed() bool { return dtypes[d%dtypeEnd].descr == "" }

// Descr is NumPy's array-protocol string (`<f4`; `<V2` for BF16, as np.save of ml_dtypes writes
// it), `|u1` for packed types.
func (d DType) Descr() string {
	if d.Packed() {
		return "|u1"
	}
	return dtypes[d].descr
}

// Torch is the name of the type in PyTorch without its `torch.`, empty where there is none.
func (d DType) Torch() string { return dtypes[d%dtypeEnd].torch }

// Word is the number of bytes that a big-endian file reverses together (4 for C64); 1 where byte
// order has no meaning, 0 for ggml blocks, whose inner fields have widths of their own.
func (d DType) Word() int { return dtypes[d%dtypeEnd].word }

// Elements multiplies a shape in its order, as the safetensors reference does: [0, 2^63, 4] is 0,
// [2^63, 4, 0] overflows. A scalar has one element.
func Elements(shape []uint64) (uint64, error) {
	n := uint64(1)
	for _, dim := range shape {
		hi, lo := bits.Mul64(n, dim)
		if hi != 0 {
			return 0, fmt.Errorf("%w: the product of shape %v overflows 64 bits", ErrTooLarge, shape)
		}
		n = lo
	}
	return n, nil
}

// Size is the number of bytes that the elements of a shape (row-major) take, with every product
// checked. ggml blocks and F4 of a GGUF never cross a row; types of safetensors and ONNX that are
// smaller than a byte are packed over the whole tensor, and roundUp says whether a last partial
// byte is filled up (ONNX) or refused (safetensors).
func (d DType) Size(shape []uint64, roundUp bool) (int64, error) {
	n, err := Elements(shape)
	if err != nil {
		return 0, err
	}
	row := dtypes[d%dtypeEnd]
	if !d.Valid() {
		return 0, fmt.Errorf("%w: no such element type", ErrUnsupported)
	}
	if row.kind == Block {
		return blockSize(row, shape, n)
	}
	blocks, rest := n/uint64(row.elems), n%uint64(row.elems)
	hi, size := bits.Mul64(blocks, uint64(row.bytes))
	if hi != 0 || size > 1<<63-16 {
		return 0, fmt.Errorf("%w: %d elements of %s overflow 63 bits of bytes", ErrTooLarge, n, row.name)
	}
	if rest == 0 {
		return int64(size), nil
	}
	restBits := rest * uint64(row.bytes) * 8 / uint64(row.elems)
	if restBits%8 != 0 && !roundUp {
		return 0, fmt.Errorf("%w: %d elements of %s are not a whole number of bytes", ErrMalformed, n, row.name)
	}
	return int64(size + (restBits+7)/8), nil
}

// blockSize is the size of a tensor of ggml blocks: each row (the last dimension) is whole blocks.
func blockSize(t dtypeRow, shape []uint64, n uint64) (int64, error) {
	row := uint64(1)
	if len(shape) > 0 {
		row = shape[len(shape)-1]
	}
	if row%uint64(t.elems) != 0 {
		return 0, fmt.Errorf("%w: a row of %d elements is not whole blocks of %d (%s)", ErrMalformed, row, t.elems, t.name)
	}
	if n == 0 {
		return 0, nil
	}
	hi, rowSize := bits.Mul64(row/uint64(t.elems), uint64(t.bytes))
	rowSize, carry := bits.Add64(rowSize, uint64(t.rowBytes), 0)
	hi2, size := bits.Mul64(rowSize, n/row)
	if hi|carry|hi2 != 0 || size > 1<<63-1 {
		return 0, fmt.Errorf("%w: shape %v of %s overflows 63 bits of bytes", ErrTooLarge, shape, t.name)
	}
	return int64(size), nil
}

// ByteShape is the shape in which NumPy sees size bytes of a packed type: the last dimension counts
// bytes where every row is whole bytes, else the array is flat. Other types keep their shape.
func (d DType) ByteShape(shape []uint64, size int64) []uint64 {
	if !d.Packed() {
		return shape
	}
	if len(shape) > 0 {
		row, err := d.Size(shape[len(shape)-1:], false)
		if lead, lerr := Elements(shape[:len(shape)-1]); err == nil && lerr == nil && uint64(row)*lead == uint64(size) {
			out := append([]uint64(nil), shape...)
			out[len(out)-1] = uint64(row)
			return out
		}
	}
	return []uint64{uint64(size)}
}
