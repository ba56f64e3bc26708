package onnx

import "weightfs/format/tensor"

// A dataField is a field of TensorProto that holds elements.
type dataField uint8

const (
	noField dataField = iota
	floatData
	doubleData
	int32Data
	int64Data
	uint64Data
	fieldCount
)

var fieldNames = [fieldCount]string{
	floatData: "float_data", doubleData: "double_data", int32Data: "int32_data", int64Data: "int64_data", uint64Data: "uint64_data",
}

// A dataType is one of TensorProto.DataType: field is where its elements are when they are not raw.
type dataType struct {
	name  string
	dtype tensor.DType // zero for what cannot be shown
	field dataField
}

// dataTypes are those of ONNX 1.23, by number. Values of 6 bits stand one by one in int32_data, but
// four in three bytes everywhere else, so that only their raw form is read.
var dataTypes = []dataType{
	{name: "UNDEFINED"},
	{"FLOAT", tensor.F32, floatData},
	{"UINT8", tensor.U8, int32Data},
	{"INT8", tensor.I8, int32Data},
	{"UINT16", tensor.U16, int32Data},
	{"INT16", tensor.I16, int32Data},
	{"INT32", tensor.I32, int32Data},
	{"INT64", tensor.I64, int64Data},
	{name: "STRING"},
	{"BOOL", tensor.BOOL, int32Data},
	{"FLOAT16", tensor.F16, int32Data},
	{"DOUBLE", tensor.F64, doubleData},
	{"UINT32", tensor.U32, uint64Data},
	{"UINT64", tensor.U64, uint64Data},
	{"COMPLEX64", tensor.C64, floatData},
	{"COMPLEX128", tensor.C128, doubleData},
	{"BFLOAT16", tensor.BF16, int32Data},
	{"FLOAT8E4M3FN", tensor.F8_E4M3, int32Data},
	{"FLOAT8E4M3FNUZ", tensor.F8_E4M3FNUZ, int32Data},
	{"FLOAT8E5M2", tensor.F8_E5M2, int32Data},
	{"FLOAT8E5M2FNUZ", tensor.F8_E5M2FNUZ, int32Data},
	{"UINT4", tensor.U4, int32Data},
	{"INT4", tensor.I4, int32Data},
	{"FLOAT4E2M1", tensor.F4, int32Data},
	{"FLOAT8E8M0", tensor.F8_E8M0, int32Data},
	{"UINT2", tensor.U2, int32Data},
	{"INT2", tensor.I2, int32Data},
	{"FLOAT6E2M3", tensor.F6_E2M3, noField},
	{"FLOAT6E3M2", tensor.F6_E3M2, noField},
}

// typeExtras holds what json/ tells of each type, made once and shared by all tensors.
var typeExtras = func() []tensor.Object {
	extras := make([]tensor.Object, len(dataTypes))
	for i, t := range dataTypes {
		extras[i] = tensor.Object{{Key: "onnx_type", Value: t.name}}
	}
	return extras
}()
