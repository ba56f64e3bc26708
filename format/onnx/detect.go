package onnx

import (
	"io"
	"math"
	"unicode/utf8"

	"weightfs/format/tensor"
)

// Detect tells whether a file is likely to be an ONNX model, which has no magic: its first fields
// are those of a ModelProto, a version of the format among them, and then a graph whose first field
// is one of a GraphProto. The rest may be missing, so that a model cut short is still called one.
func Detect(r io.ReaderAt, size int64) bool {
	c := tensor.NewCursor(r, size, "onnx")
	m := message{c: c, end: size, what: "model"}
	version := false
	for range 64 { // opset_import and metadata_props may come before the graph, and repeat
		if !m.more() {
			return false
		}
		field, wire := m.key()
		switch {
		case field == 1 && wire == wireVarint:
			v := m.varint("ir_version")
			version = 0 < v && v < 1000
		case field == 5 && wire == wireVarint:
			m.varint("model_version")
		case wire != wireBytes:
			return false
		case field == 7:
			return version && beginsGraph(m)
		case field >= 2 && field <= 6:
			if n := m.length("text"); n > maxValue || !utf8.Valid(c.Bytes(uint64(n), maxValue, "text")) {
				return false
			}
		case field == 8 || field == 14 || field == 20 || field == 25 || field == 26:
			m.extent("field")
		default:
			return false
		}
	}
	return false
}

// beginsGraph tells whether a graph comes next. Its end may lie behind that of the file.
func beginsGraph(m message) bool {
	n := m.varint("graph")
	if m.c.Err() != nil || n == 0 || n > math.MaxInt32 || !m.more() { // protobuf ends at 2 GiB
		return false
	}
	field, wire := m.key()
	switch field {
	case 1, 2, 5, 10, 11, 12, 13, 14, 15, 16:
		return m.c.Err() == nil && wire == wireBytes
	}
	return false
}
