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
		"two names":            {join(out, op, data(5, join(data(1, "x"), f32, data(1, "value")))), "", `"w" of a Constant node is not shown: its attribute has several names`},
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

// A Constant may give a number or a list of them in an attribute of its own, and not in a tensor.
func TestConstantsOfNumbers(t *testing.T) {
	op, out := data(4, "Constant"), data(2, "w")
	attribute := func(name string, fields ...[]byte) []byte { return data(5, join(data(1, name), join(fields...))) }
	for name, tt := range map[string]struct {
		node  []byte
		names string
		warn  string
	}{
		"int":                      {join(out, op, attribute("value_int", number(3, 300), number(20, 2))), "w", ""},
		"the name behind it":       {join(data(5, join(number(3, 300), data(1, "value_int"))), out, op), "w", ""},
		"two values, of which":     {join(out, op, attribute("value_int", number(3, 1), number(3, 2))), "w", ""},
		"packed":                   {join(out, op, attribute("value_ints", data(8, "\x01\x02"), number(20, 7))), "w", ""},
		"no ints":                  {join(out, op, attribute("value_ints", number(20, 7))), "w", ""},
		"0 left out":               {join(out, op, attribute("value_int", number(20, 2))), "", `"w" of a Constant node is not shown: no data`},
		"in pieces":                {join(out, op, attribute("value_ints", number(8, 1), number(20, 7), number(8, 1))), "", "2 pieces"},
		"text":                     {join(out, op, attribute("value_string", data(4, "a"), number(20, 3))), "", "STRING"},
		"of another kind":          {join(out, op, attribute("value_int", number(3, 1), number(20, 1))), "", "of type 1, not 2"},
		"ints said to be floats":   {join(out, op, attribute("value_ints", number(8, 1), number(20, 6))), "", `"w" of a Constant node is not shown: its attribute "value_ints" is said to be of type 6, not 7`},
		"two names":                {join(out, op, attribute("x", number(8, 1), number(8, 2), data(1, "value_ints"), number(20, 7))), "", `"w" of a Constant node is not shown: its attribute has several names`},
		"two names of values":      {join(out, op, attribute("value_floats", number(8, 1), data(1, "value_ints"), number(20, 7))), "", "several names"},
		"the same name twice":      {join(out, op, attribute("value_ints", number(8, 1), data(1, "value_ints"), number(20, 7))), "w", ""},
		"a name of no value last":  {join(out, op, attribute("value_ints", number(8, 1), data(1, "x"), number(20, 7))), "", ""},
		"bytes for an int":         {join(out, op, attribute("value_int", data(3, "\x05"), number(20, 2))), "", "no data"},
		"bytes behind an int":      {join(out, op, attribute("value_int", number(3, 5), data(3, "\x05"), number(20, 2))), "w", ""},
		"a float for an int":       {join(out, op, attribute("value_int", fixed32(3, "1234"))), "", "no data"},
		"of another operator":      {join(out, data(4, "Other"), attribute("value_int", number(3, 300))), "", ""},
		"operator behind":          {join(out, attribute("value_ints", number(8, 1), number(8, 2)), data(4, "Other")), "", ""},
		"another attribute":        {join(out, op, attribute("other", number(3, 300))), "", ""},
		"two attributes":           {join(out, op, attribute("value_int", number(3, 1)), attribute("value_float", fixed32(2, "1234"))), "", "2 values"},
		"no sequence of varints":   {join(out, op, attribute("other", data(8, "\xff"))), "", ""},
		"beside a wrong attribute": {join(out, op, attribute("value_int", number(3, 1)), attribute("value", number(3, 1))), "w", ""},
	} {
		checkShown(t, name, model(data(1, tt.node)), tt.names, tt.warn)
	}
	for name, bad := range map[string][]byte{
		"half a float": attribute("value_floats", data(7, "12345")),
		"half a value": attribute("value_ints", data(8, "\x01\x82")),
	} {
		file := model(data(1, join(out, op, bad)))
		if h, err := Parse(bytes.NewReader(file), int64(len(file))); err == nil {
			t.Errorf("%s: %+v", name, h)
		}
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
