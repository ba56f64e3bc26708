// Package onnx reads the initializers of ONNX models. It walks the protobuf messages by offset and
// reads no tensor's bytes but those of varints, which have to be counted.
package onnx

import (
	"fmt"
	"io"

	"weightfs/format/tensor"
)

const (
	maxName  = 1 << 20  // bytes of a name, key or path
	maxValue = 16 << 20 // bytes of a metadata value
	// maxGraphs is how deep graphs lie within graphs; protobuf's own readers stop at 100 messages,
	// of which a graph in a node's attribute takes three.
	maxGraphs = 33
)

// A parser walks one model.
type parser struct {
	r      io.ReaderAt
	c      *tensor.Cursor
	header *tensor.Header
	seen   map[string]bool // names of initializers
	buf    []byte          // for counting varints

	constants []tensor.Info // of the nodes of the graph
	inner     []tensor.Info // of graphs within the graph

	graphs         int
	inFunction     bool
	attributes     int // tensors in other attributes
	attributeBytes int64
}

// Parse reads an ONNX model. Its tensors are the initializers of the graph and what its Constant nodes
// give, by the names of their outputs; and those of graphs within it whose names are not taken. What is
// in another file is named and not checked.
func Parse(r io.ReaderAt, size int64) (*tensor.Header, error) {
	c := tensor.NewCursor(r, size, "onnx")
	p := &parser{r: r, c: c, header: &tensor.Header{Format: "onnx"}, seen: map[string]bool{}}
	p.model(message{c: c, end: size, what: "model"})
	if c.Err() == nil && p.graphs == 0 {
		c.Fail(0, tensor.ErrMalformed, "the model has no graph")
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	p.addUnless(p.constants, "of a Constant node")
	p.addUnless(p.inner, "of a graph within the graph") // whose names are theirs alone only within a branch
	if len(p.header.Tensors) == 0 && p.attributes > 0 {
		p.warn("the model has no initializers: %d tensors of %d bytes are attributes of nodes, which are not shown",
			p.attributes, p.attributeBytes)
	}
	return p.header, nil
}

// addUnless adds the tensors whose names are not taken.
func (p *parser) addUnless(list []tensor.Info, where string) {
	for _, info := range list {
		if p.seen[info.Name] {
			p.warn("tensor %q %s is not shown: another one has its name", info.Name, where)
			continue
		}
		p.seen[info.Name] = true
		p.header.Tensors = append(p.header.Tensors, info)
	}
}

func (p *parser) warn(format string, a ...any) {
	p.header.Warn(format, a...)
}

// fail records a fault of a tensor, at offset off.
func (p *parser) fail(name string, off int64, reason error, format string, a ...any) {
	p.c.Fail(off, reason, "tensor %q: %s", name, fmt.Sprintf(format, a...))
}

// modelKeys are the fields of ModelProto that metadata.json tells as they are.
var modelKeys = map[uint64]string{
	1: "ir_version", 2: "producer_name", 3: "producer_version", 4: "domain", 5: "model_version", 6: "doc_string",
}

func (p *parser) model(m message) {
	meta := &p.header.Meta
	var opsets, props tensor.Object
	for m.more() {
		field, wire := m.key()
		switch {
		case (field == 1 || field == 5) && m.is(wire, wireVarint, modelKeys[field]):
			*meta = append(*meta, tensor.KV{Key: modelKeys[field], Value: int64(m.varint(modelKeys[field]))})
		case field <= 6 && m.is(wire, wireBytes, modelKeys[field]):
			*meta = append(*meta, tensor.KV{Key: modelKeys[field], Value: m.text(maxValue, modelKeys[field])})
		case field == 7 && m.is(wire, wireBytes, "graph"):
			p.graphs++
			p.graph(m.sub("graph"), 1)
		case field == 8 && m.is(wire, wireBytes, "opset_import"):
			opsets = append(opsets, opset(m.sub("opset_import")))
		case field == 14 && m.is(wire, wireBytes, "metadata_props"):
			props = append(props, pair(m.sub("metadata_props"), maxValue))
		case field == 20 && m.is(wire, wireBytes, "training_info"):
			p.training(m.sub("training_info"))
		case field == 25 && m.is(wire, wireBytes, "functions"):
			p.function(m.sub("functions"))
		default:
			m.skip(wire)
		}
	}
	if opsets != nil {
		*meta = append(*meta, tensor.KV{Key: "opset_import", Value: opsets})
	}
	if props != nil {
		*meta = append(*meta, tensor.KV{Key: "metadata_props", Value: props})
	}
}

func opset(m message) tensor.KV {
	domain, version := "", int64(0)
	for m.more() {
		switch field, wire := m.key(); {
		case field == 1 && m.is(wire, wireBytes, "domain"):
			domain = m.text(maxName, "domain")
		case field == 2 && m.is(wire, wireVarint, "version"):
			version = int64(m.varint("version"))
		default:
			m.skip(wire)
		}
	}
	return tensor.KV{Key: domain, Value: version}
}

// pair reads a StringStringEntryProto.
func pair(m message, limit int64) tensor.KV {
	key, value := "", ""
	for m.more() {
		switch field, wire := m.key(); {
		case field == 1 && m.is(wire, wireBytes, "key"):
			key = m.text(maxName, "key")
		case field == 2 && m.is(wire, wireBytes, "value"):
			value = m.text(limit, "value")
		default:
			m.skip(wire)
		}
	}
	return tensor.KV{Key: key, Value: value}
}

// training walks a TrainingInfoProto, whose graphs have what training adds to the weights.
func (p *parser) training(m message) {
	for m.more() {
		switch field, wire := m.key(); {
		case (field == 1 || field == 2) && m.is(wire, wireBytes, "graph"):
			p.graph(m.sub("graph"), 2)
		default:
			m.skip(wire)
		}
	}
}

// function walks a FunctionProto. The names of its nodes' outputs are those of no tensor of the model:
// each call of it has them anew.
func (p *parser) function(m message) {
	p.inFunction = true
	defer func() { p.inFunction = false }()
	for m.more() {
		switch field, wire := m.key(); {
		case field == 7 && m.is(wire, wireBytes, "node"):
			p.node(m.sub("node"), 1)
		case field == 11 && m.is(wire, wireBytes, "attribute_proto"):
			p.attribute(m.sub("attribute_proto"), &node{domain: "none"}, 1)
		default:
			m.skip(wire)
		}
	}
}

// graph walks a GraphProto; depth is 1 for the model's own.
func (p *parser) graph(m message, depth int) {
	if depth > maxGraphs {
		m.c.Fail(m.c.Off(), tensor.ErrUnsafe, "graphs within graphs, more than %d deep", maxGraphs)
	}
	for m.more() {
		switch field, wire := m.key(); {
		case field == 1 && m.is(wire, wireBytes, "node"):
			p.node(m.sub("node"), depth)
		case field == 2 && depth == 1 && m.is(wire, wireBytes, "graph name"):
			p.header.Meta = append(p.header.Meta, tensor.KV{Key: "graph_name", Value: m.text(maxName, "graph name")})
		case field == 5 && m.is(wire, wireBytes, "initializer"):
			p.initializer(m.sub("initializer"), depth)
		case field == 15 && m.is(wire, wireBytes, "sparse_initializer"):
			p.sparse(m.sub("sparse_initializer"))
		default:
			m.skip(wire)
		}
	}
}

// sparse warns of a SparseTensorProto, whose name is that of its values.
func (p *parser) sparse(m message) {
	name := ""
	for m.more() {
		switch field, wire := m.key(); {
		case field == 1 && m.is(wire, wireBytes, "values"):
			name = p.proto(m.sub("values")).name
		default:
			m.skip(wire)
		}
	}
	p.warn("tensor %q is not shown: it is sparse", name)
}
