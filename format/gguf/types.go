package gguf

import "weightfs/format/tensor"

// ggmlTypes maps the type ids of a file to element types; 0 means that no size is known. Ids up to
// 42 are ggml's, 4 and 5 and 31 to 38 of them removed, from 133 on ik_llama.cpp's. 36 to 38 had two
// meanings with different sizes (IQ4_NL_4_4, _4_8, _8_8 in ggml; I2_S, I8_S, TL1 in BitNet's fork),
// so they stay unknown. The row-interleaved types (ids above 200) are left out.
var ggmlTypes = [...]tensor.DType{
	0: tensor.F32, 1: tensor.F16,
	2: tensor.Q4_0, 3: tensor.Q4_1,
	6: tensor.Q5_0, 7: tensor.Q5_1, 8: tensor.Q8_0, 9: tensor.Q8_1,
	10: tensor.Q2_K, 11: tensor.Q3_K, 12: tensor.Q4_K, 13: tensor.Q5_K, 14: tensor.Q6_K, 15: tensor.Q8_K,
	16: tensor.IQ2_XXS, 17: tensor.IQ2_XS, 18: tensor.IQ3_XXS, 19: tensor.IQ1_S,
	20: tensor.IQ4_NL, 21: tensor.IQ3_S, 22: tensor.IQ2_S, 23: tensor.IQ4_XS,
	24: tensor.I8, 25: tensor.I16, 26: tensor.I32, 27: tensor.I64, 28: tensor.F64,
	29: tensor.IQ1_M, 30: tensor.BF16,
	31: tensor.Q4_0_4_4, 32: tensor.Q4_0_4_8, 33: tensor.Q4_0_8_8,
	34: tensor.TQ1_0, 35: tensor.TQ2_0,
	39: tensor.MXFP4, 40: tensor.NVFP4, 41: tensor.Q1_0, 42: tensor.Q2_0,
	133: tensor.Q6_0, 134: tensor.IQ1_BN, 135: tensor.IQ2_BN,
	137: tensor.IQ2_K, 138: tensor.IQ3_K, 139: tensor.IQ4_K, 140: tensor.IQ5_K, 141: tensor.IQ6_K,
	144: tensor.IQ4_KS, 145: tensor.IQ2_KS, 146: tensor.IQ4_KSS,
	152: tensor.IQ5_KS, 153: tensor.IQ2_KT, 154: tensor.IQ3_KT, 155: tensor.IQ4_KT,
	156: tensor.IQ3_KS, 157: tensor.IQ2_KL, 158: tensor.IQ1_KT,
}

// unsized says what is known of some of the ids without a size.
var unsized = map[uint32]string{
	4:  "removed Q4_2",
	5:  "removed Q4_3",
	36: "removed IQ4_NL_4_4, or BitNet's I2_S",
	37: "removed IQ4_NL_4_8, or BitNet's I8_S",
	38: "removed IQ4_NL_8_8, or BitNet's TL1",
}

// typeExtras holds a value of json/'s ggml_type for each id, made once and shared by all tensors.
var typeExtras = func() (extras [len(ggmlTypes)]any) {
	for id, d := range ggmlTypes {
		extras[id] = tensor.Object{{Key: "id", Value: uint64(id)}, {Key: "name", Value: d.String()}}
	}
	return extras
}()

func dtypeOf(id uint32) (tensor.DType, bool) {
	if int64(id) >= int64(len(ggmlTypes)) {
		return 0, false
	}
	return ggmlTypes[id], ggmlTypes[id].Valid()
}
