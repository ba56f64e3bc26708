// Package decode turns stored elements into float32, bit for bit as NumPy with ml_dtypes and as
// gguf-py do (for Q1_0 and Q2_0, which gguf-py lacks, as ggml does), and reads them through an
// io.ReaderAt so that a view of any size needs no memory. The elements that it is given are row-major
// and little-endian already: package elements makes them so.
//
// A product that is added to or subtracted, even in another statement, is rounded to float32 by a
// conversion of its own: without it the compiler may fuse the two operations, and the last bit
// would depend on the processor.
package decode

import "weightfs/format/tensor"

// A kernel decodes whole blocks: len(dst) elements, from exactly the bytes that hold them.
type kernel func(dst []float32, src []byte)

var kernels = [...]kernel{
	tensor.F32:         f32,
	tensor.F16:         f16,
	tensor.BF16:        bf16,
	tensor.F8_E4M3:     bytewise(&e4m3),
	tensor.F8_E5M2:     bytewise(&e5m2),
	tensor.F8_E4M3FNUZ: bytewise(&e4m3fnuz),
	tensor.F8_E5M2FNUZ: bytewise(&e5m2fnuz),
	tensor.F8_E8M0:     bytewise(&e8m0),

	tensor.Q4_0:    blocks(q4_0, 32, 18),
	tensor.Q4_1:    blocks(q4_1, 32, 20),
	tensor.Q5_0:    blocks(q5_0, 32, 22),
	tensor.Q5_1:    blocks(q5_1, 32, 24),
	tensor.Q8_0:    blocks(q8_0, 32, 34),
	tensor.Q2_K:    blocks(q2K, 256, 84),
	tensor.Q3_K:    blocks(q3K, 256, 110),
	tensor.Q4_K:    blocks(q4K, 256, 144),
	tensor.Q5_K:    blocks(q5K, 256, 176),
	tensor.Q6_K:    blocks(q6K, 256, 210),
	tensor.IQ2_XXS: blocks(iq2XXS, 256, 66),
	tensor.IQ2_XS:  blocks(iq2XS, 256, 74),
	tensor.IQ2_S:   blocks(iq2S, 256, 82),
	tensor.IQ3_XXS: blocks(iq3XXS, 256, 98),
	tensor.IQ3_S:   blocks(iq3S, 256, 110),
	tensor.IQ1_S:   blocks(iq1S, 256, 50),
	tensor.IQ1_M:   blocks(iq1M, 256, 56),
	tensor.IQ4_NL:  blocks(iq4NL, 32, 18),
	tensor.IQ4_XS:  blocks(iq4XS, 256, 136),
	tensor.TQ1_0:   blocks(tq1_0, 256, 54),
	tensor.TQ2_0:   blocks(tq2_0, 256, 66),
	tensor.MXFP4:   blocks(mxfp4, 32, 17),
	tensor.NVFP4:   blocks(nvfp4, 64, 36),
	tensor.Q1_0:    blocks(q1_0, 128, 18),
	tensor.Q2_0:    blocks(q2_0, 64, 18),
}

// Supported tells whether Floats and Reader decode a type: floats of at most 32 bits with a byte to
// themselves, and ggml's blocks. F64 would lose digits; integers and complex numbers are no float32.
func Supported(d tensor.DType) bool {
	return int(d) < len(kernels) && kernels[d] != nil
}

// Floats decodes whole blocks of a supported type: len(dst) elements, from the bytes of src that
// hold exactly those.
func Floats(d tensor.DType, dst []float32, src []byte) { kernels[d](dst, src) }

// blocks makes a kernel of a function that decodes one block of elems elements in size bytes.
func blocks(block kernel, elems, size int) kernel {
	return func(dst []float32, src []byte) {
		for len(dst) >= elems && len(src) >= size {
			block(dst[:elems:elems], src[:size:size])
			dst, src = dst[elems:], src[size:]
		}
	}
}
