package onnx

import "weightfs/format/tensor"

// A numbersKind is an attribute that gives a Constant's value as a number or a list of them; or as text,
// which cannot be shown.
type numbersKind struct {
	attribute string
	kind      uint64 // AttributeProto.AttributeType
	list      bool
	dataType  uint64
	data      dataField // that a TensorProto of this type has
	wire      byte
}

// numbers are these attributes by the field of AttributeProto in which the value is.
var numbers = [...]numbersKind{
	2: {"value_float", 1, false, 1, floatData, wireFixed32},
	3: {"value_int", 2, false, 7, int64Data, wireVarint},
	4: {"value_string", 3, false, 8, noField, wireBytes},
	7: {"value_floats", 6, true, 1, floatData, wireFixed32},
	8: {"value_ints", 7, true, 7, int64Data, wireVarint},
	9: {"value_strings", 8, true, 8, noField, wireBytes},
}

// numbersField is the field that an attribute of this name has its value in, 0 for none.
func numbersField(name string) int {
	for field, k := range numbers {
		if name != "" && name == k.attribute {
			return field
		}
	}
	return 0
}

// numeric tells whether a field may hold the numbers of a Constant.
func (a *attribute) numeric(field uint64) bool {
	return field < uint64(len(numbers)) && numbers[field].data != noField && (a.name == "" || a.name == numbers[field].attribute)
}

// addNumbers adds what a field holds. Readers of protobuf pass over one of another wire type.
func (a *attribute) addNumbers(m message, key int64, field uint64, wire byte) {
	k := &numbers[field]
	if wire != k.wire && !(k.list && wire == wireBytes) {
		m.skip(wire)
		return
	}
	if !k.list {
		a.numbers[field] = pieces{} // the last one counts
	}
	a.numbers[field].read(m, key, wire, k.wire, k.attribute)
}

// numbersProto is the value of an attribute as a TensorProto of the same meaning.
func (p *parser) numbersProto(a *attribute, field int) *proto {
	k, data := &numbers[field], a.numbers[field]
	t := &proto{dataType: k.dataType}
	t.data[k.data] = data
	switch {
	case !k.list:
	case data.count > 0 && data.values == 0:
		t.dims = []uint64{uint64(p.countPacked(data.at, k.wire))}
	default:
		t.dims = []uint64{uint64(data.values)}
	}
	return t
}

// countPacked counts the values in a packed field, as far as they are any.
func (p *parser) countPacked(at tensor.Extent, wire byte) int64 {
	if size := fixedSizes[wire]; size > 0 {
		return at.Len / size
	}
	n, _ := p.countVarints(at)
	return n
}
