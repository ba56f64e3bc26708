package onnx

import (
	"bytes"
	"testing"
)

// The element type leaves double_data unused, and protobuf refuses the model all the same.
func TestParseRefusesAPartOfANumber(t *testing.T) {
	file := model(initializer(number(2, 2), data(8, "w"), data(9, ""), data(10, "1234567"), number(1, 0)))
	h, err := Parse(bytes.NewReader(file), int64(len(file)))
	checkError(t, h, err, []string{"double_data", "7"})
}
