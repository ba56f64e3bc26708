package onnx

import (
	"bytes"
	"strings"
	"testing"
)

func TestConstants(t *testing.T) {
	op, out := data(4, "Constant"), data(2, "w")
	f32 := data(5, join(number(1, 1), number(2, 1), data(9, "1234")))
	value := data(5, join(data(1, "value"), f32, number(20, typeTensor)))
	for name, tt := range map[string]struct {
		node  []byte
		names string
		warn  string
	}{
		"in order":             {join(out, op, value), "w", ""},
		"backwards":            {join(value, op, out), "w", ""},
		"name behind value":    {join(out, op, data(5, join(f32, data(1, "value")))), "w", ""},
		"by the long domain":   {join(out, op, value, data(7, "ai.onnx")), "w", ""},
		"of another domain":    {join(out, op, value, data(7, "mine")), "", "1 tensors of 10 bytes"},
		"domain in front":      {join(data(7, "mine"), out, op, value), "", "1 tensors of 10 bytes"},
		"another operator":     {join(out, data(4, "ConstantOfShape"), value), "", "1 tensors of 10 bytes"},
		"operator behind":      {join(out, value, data(4, "ConstantOfShape")), "", "1 tensors of 10 bytes"},
		"another attribute":    {join(out, op, data(5, join(data(1, "other"), f32))), "", "1 tensors of 10 bytes"},
		"another one behind":   {join(out, op, data(5, join(f32, data(1, "other")))), "", "1 tensors of 10 bytes"},
		"attribute of a graph": {join(out, op, data(5, join(data(1, "value"), f32, number(20, 5)))), "", "1 tensors of 10 bytes"},
		"two values":           {join(out, op, value, value), "", `"w" of a Constant node is not shown: the node has 2 values`},
		"value in two parts":   {join(out, op, data(5, join(data(1, "value"), f32, f32))), "", "2 values"},
		"sparse":               {join(out, op, data(5, join(data(22, "1234"), data(1, "sparse_value")))), "", `"w" of a Constant node is not shown: it is sparse`},
		"sparse of another":    {join(out, data(4, "Other"), data(5, join(data(1, "sparse_value"), data(22, "1234")))), "", ""},
		"list of tensors":      {join(out, op, data(5, join(data(1, "values"), data(10, "12345"), data(10, "12345")))), "", "2 tensors of 10 bytes"},
		"no output":            {join(op, value), "", "0 outputs"},
		"two outputs":          {join(out, data(2, "v"), op, value), "", "2 outputs"},
		"nameless output":      {join(data(2, ""), op, value), "", "0 outputs"},
		"text":                 {join(out, op, data(5, join(data(1, "value"), data(5, number(2, 8))))), "", `"w" of a Constant node is not shown: its element type is STRING`},
	} {
		checkShown(t, name, model(data(1, tt.node)), tt.names, tt.warn)
	}
}

// checkShown parses a model, which shows the tensors of these names and warns of the others.
func checkShown(t *testing.T, model string, file []byte, want, warn string) {
	t.Helper()
	h, err := Parse(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Errorf("%s: %v", model, err)
		return
	}
	var names []string
	for _, info := range h.Tensors {
		names = append(names, info.Name)
	}
	warnings := strings.Join(h.Warnings, "; ")
	if strings.Join(names, " ") != want || !strings.Contains(warnings, warn) || warn == "" && warnings != "" {
		t.Errorf("%s: %q, warnings %q", model, names, warnings)
	}
}

// A fault in the tensor of a Constant has the name of the output, not that of the tensor, which means nothing.
func TestFaultOfAConstantNamesItsOutput(t *testing.T) {
	bad := data(5, join(number(1, 1<<64-1), number(2, 1), data(8, "const_tensor"), data(9, "1234")))
	file := model(data(1, join(data(2, "w"), data(4, "Constant"), data(5, join(data(1, "value"), bad)))))
	h, err := Parse(bytes.NewReader(file), int64(len(file)))
	checkError(t, h, err, []string{`tensor "w": dimension -1`})
}

// Training and functions stand beside the graph; their tensors were passed over without a word.
func TestTensorsBesideTheGraph(t *testing.T) {
	moment := data(5, join(number(1, 1), number(2, 1), data(8, "moment"), data(9, "1234")))
	value := join(data(1, "value"), data(5, join(number(1, 1), number(2, 1), data(9, "1234"))))
	for name, tt := range map[string]struct {
		beside []byte
		names  string
		warn   string
	}{
		"training":                {data(20, data(2, moment)), "moment", ""},
		"initialization":          {data(20, data(1, moment)), "moment", ""},
		"function":                {data(25, data(7, join(data(2, "w"), data(4, "Constant"), data(5, value)))), "", "1 tensors of 10 bytes"},
		"default of a function":   {data(25, data(11, value)), "", "1 tensors of 10 bytes"},
		"graph within a function": {data(25, data(7, data(5, data(6, moment)))), "moment", ""},
	} {
		checkShown(t, name, join(model(nil), tt.beside), tt.names, tt.warn)
	}
	if _, err := Parse(bytes.NewReader(data(20, data(2, moment))), int64(len(data(20, data(2, moment))))); err == nil {
		t.Error("a model of no graph but that of its training is accepted")
	}
}
