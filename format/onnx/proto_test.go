package onnx

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"weightfs/format/tensor"
)

// Serialisers write the fields in the order of their numbers: the name behind dims and float_data.
func TestFaultsNameTheTensorBehindThem(t *testing.T) {
	name := data(8, "late")
	for what, fields := range map[string][]byte{
		"negative":             join(number(1, 1<<64-1), name),
		"dimensions":           join(bytes.Repeat(number(1, 1), maxRank+1), name),
		"ends behind dims":     join(data(1, "\xff"), number(2, 1), name),
		"whole number":         join(number(1, 1), number(2, 1), data(4, "abc"), name),
		"float_data holds":     join(number(1, 2), number(2, 1), data(4, "abcd"), name),
		"data_type of":         join(data(2, "x"), name),
		"2 remain":             join(number(1, 1), name, []byte{9<<3 | 2, 9}, []byte("ab")),
		"field number 0":       join(name, []byte{0}),
		"is no varint of 64 b": join([]byte{1 << 3}, bytes.Repeat([]byte{0xff}, 10), name),
	} {
		file := model(initializer(fields))
		_, err := Parse(bytes.NewReader(file), int64(len(file)))
		fault, ok := errors.AsType[*tensor.FormatError](err)
		if !ok || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if n := strings.Count(err.Error(), `tensor "late"`); n != 1 && what != "is no varint of 64 b" || n > 1 {
			t.Errorf("%s: the tensor is named %d times: %v", what, n, fault)
		}
	}
}

// The element type leaves double_data unused, and protobuf refuses the model all the same.
func TestParseRefusesAPartOfANumber(t *testing.T) {
	file := model(initializer(number(2, 2), data(8, "w"), data(9, ""), data(10, "1234567"), number(1, 0)))
	h, err := Parse(bytes.NewReader(file), int64(len(file)))
	checkError(t, h, err, []string{"double_data", "7"})
}
