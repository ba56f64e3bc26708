package onnx

import (
	"errors"
	"fmt"

	"weightfs/format/tensor"
)

// A node is what a NodeProto says that matters here.
type node struct {
	op, domain string
	outputs    int    // that have a name: one without is left out
	output     string // the last of them
	values     int    // attributes that give a Constant's value, and their parts
	value      given  // the last of them
	sparse     bool   // it has a sparse_value
	none       string // why a value is not shown, of the attribute that gives it
}

// A given is a Constant's value as a tensor. Where it is no number or list of them, but a TensorProto,
// that has been counted as a tensor of an attribute.
type given struct {
	*proto
	at      tensor.Extent
	counted int
}

// constant tells whether a node may be a Constant of a tensor: fields may come in any order.
func (n *node) constant() bool { return (n.op == "" || n.op == "Constant") && n.domain == "" }

// node looks into a node's attributes for graphs, and for the tensor of a Constant.
func (p *parser) node(m message, depth int) {
	n := &node{}
	for m.more() {
		switch field, wire := m.key(); {
		case field == 2 && m.is(wire, wireBytes, "output"):
			if name := m.text(maxName, "output"); name != "" {
				n.outputs, n.output = n.outputs+1, name
			}
		case field == 4 && m.is(wire, wireBytes, "op_type"):
			n.op = m.text(maxName, "op_type")
		case field == 5 && m.is(wire, wireBytes, "attribute"):
			p.attribute(m.sub("attribute"), n, depth)
		case field == 7 && m.is(wire, wireBytes, "domain"):
			if n.domain = m.text(maxName, "domain"); n.domain == "ai.onnx" {
				n.domain = "" // another name of it
			}
		default:
			m.skip(wire)
		}
	}
	if p.c.Err() == nil && (n.value.proto != nil || n.sparse || n.none != "") {
		p.constant(n, depth)
	}
}

// typeTensor is AttributeProto.TENSOR.
const typeTensor = 4

// An attribute is what an AttributeProto says that matters here.
type attribute struct {
	at      tensor.Extent
	name    string // the last one, as all readers of protobuf have it
	renamed bool   // after fields that were read by another name
	kind    uint64
	tensor  given
	parts   int // of the tensor
	sparse  bool
	numbers [len(numbers)]pieces // by field
}

func (p *parser) attribute(m message, n *node, depth int) {
	a := &attribute{at: tensor.Extent{Off: m.c.Off(), Len: m.end - m.c.Off()}}
	for m.more() {
		key := m.c.Off()
		switch field, wire := m.key(); {
		case field == 1 && m.is(wire, wireBytes, "name"):
			name := m.text(maxName, "name")
			a.renamed = a.renamed || a.name != "" && a.name != name
			a.name = name
		case field == 5 && m.is(wire, wireBytes, "tensor"):
			p.attributeTensor(m.sub("tensor"), n, a)
		case field == 20 && m.is(wire, wireVarint, "type"):
			a.kind = m.varint("type")
		case field == 10 && m.is(wire, wireBytes, "tensors"):
			p.attributes++
			p.attributeBytes += m.extent("tensor").Len
		case field == 22 && m.is(wire, wireBytes, "sparse_tensor"):
			m.extent("sparse tensor")
			a.sparse = true
		case (field == 6 || field == 11) && m.is(wire, wireBytes, "graph"):
			p.graph(m.sub("graph"), depth+1)
		case n.constant() && a.numeric(field):
			a.addNumbers(m, key, field, wire)
		default:
			m.skip(wire)
		}
	}
	n.sparse = n.sparse || a.sparse && a.name == "sparse_value"
	if n.constant() {
		p.value(n, a)
	}
}

// value takes an attribute that gives a Constant's value.
func (p *parser) value(n *node, a *attribute) {
	field, kind := numbersField(a.name), uint64(typeTensor)
	switch {
	case field > 0:
		kind = numbers[field].kind
	case a.name != "value" || a.parts == 0 && !a.renamed:
		return
	}
	switch {
	case a.renamed:
		n.none = "its attribute has several names"
	case a.kind != 0 && a.kind != kind:
		n.none = fmt.Sprintf("its attribute %q is said to be of type %d, not %d", a.name, a.kind, kind)
	case field > 0:
		n.value, n.values = given{proto: p.numbersProto(a, field), at: a.at}, n.values+1
	default:
		n.value, n.values = a.tensor, n.values+a.parts
	}
}

// attributeTensor reads a tensor if it may be that of a Constant.
func (p *parser) attributeTensor(m message, n *node, a *attribute) {
	at := tensor.Extent{Off: m.c.Off(), Len: m.end - m.c.Off()}
	if n.constant() && (a.name == "" || a.name == "value") {
		a.tensor = given{proto: p.proto(m), at: at, counted: 1}
		a.parts++
		p.nameFault(n.output)
	} else {
		m.c.Skip(uint64(at.Len), "tensor")
	}
	p.attributes++
	p.attributeBytes += at.Len
}

// nameFault calls the tensor of a fault by its node's output, which is what it would be called.
func (p *parser) nameFault(output string) {
	if fault, ok := errors.AsType[*tensor.FormatError](p.c.Err()); ok && output != "" {
		fault.Tensor = output
	}
}

// constant takes what a Constant node gives for a tensor of its output's name.
func (p *parser) constant(n *node, depth int) {
	if n.op != "Constant" || n.domain != "" || p.inFunction {
		return
	}
	switch {
	case n.sparse:
		p.warn("tensor %q of a Constant node is not shown: it is sparse", n.output)
		return
	case n.none != "":
		p.warn("tensor %q of a Constant node is not shown: %s", n.output, n.none)
		return
	case n.outputs != 1:
		p.warn("the tensor of a Constant node is not shown: the node has %d outputs that could name it", n.outputs)
		return
	case n.values != 1:
		p.warn("tensor %q of a Constant node is not shown: the node has %d values", n.output, n.values)
		return
	}
	p.attributes -= n.value.counted
	p.attributeBytes -= int64(n.value.counted) * n.value.at.Len
	n.value.name = n.output
	info, reason := p.info(n.value.proto, n.value.at.Off)
	switch {
	case reason != "":
		p.warn("tensor %q of a Constant node is not shown: %s", n.output, reason)
	case depth > 1:
		p.inner = append(p.inner, info)
	default:
		p.constants = append(p.constants, info)
	}
}
