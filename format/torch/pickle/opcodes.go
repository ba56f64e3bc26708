package pickle

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"unicode/utf8"

	"weightfs/format/tensor"
)

// opcodes is the instruction set (PEP 307, PEP 3154, PEP 574). The textual opcodes of protocols 0
// and 1, the extension registry and out-of-band buffers have no place in a file of torch.save.
var opcodes = [256]opcode{
	'.': {"STOP", (*machine).stop},
	'(': {"MARK", func(m *machine) { m.marks = append(m.marks, len(m.stack)) }},
	'0': {"POP", (*machine).popOne},
	'1': {"POP_MARK", func(m *machine) { m.popMark() }},
	'2': {"DUP", func(m *machine) { m.push(m.top()) }},

	'N':  {"NONE", func(m *machine) { m.push(nil) }},
	0x88: {"NEWTRUE", func(m *machine) { m.push(true) }},
	0x89: {"NEWFALSE", func(m *machine) { m.push(false) }},
	'J':  {"BININT", func(m *machine) { m.int(int64(int32(m.c.U32("int")))) }},
	'K':  {"BININT1", func(m *machine) { m.int(int64(m.c.U8("int"))) }},
	'M':  {"BININT2", func(m *machine) { m.int(int64(m.c.U16("int"))) }},
	0x8a: {"LONG1", func(m *machine) { m.long(uint64(m.c.U8("int length"))) }},
	0x8b: {"LONG4", func(m *machine) { m.long(uint64(m.c.U32("int length"))) }},
	'G':  {"BINFLOAT", (*machine).float},

	'X':  {"BINUNICODE", func(m *machine) { m.push(m.text(uint64(m.c.U32("str length")))) }},
	0x8c: {"SHORT_BINUNICODE", func(m *machine) { m.push(m.text(uint64(m.c.U8("str length")))) }},
	0x8d: {"BINUNICODE8", func(m *machine) { m.push(m.text(m.c.U64("str length"))) }},
	'T':  {"BINSTRING", func(m *machine) { m.py2str(uint64(m.c.U32("str length"))) }},
	'U':  {"SHORT_BINSTRING", func(m *machine) { m.py2str(uint64(m.c.U8("str length"))) }},
	'B':  {"BINBYTES", func(m *machine) { m.push(m.raw(uint64(m.c.U32("bytes length")))) }},
	'C':  {"SHORT_BINBYTES", func(m *machine) { m.push(m.raw(uint64(m.c.U8("bytes length")))) }},
	0x8e: {"BINBYTES8", func(m *machine) { m.push(m.raw(m.c.U64("bytes length"))) }},
	0x96: {"BYTEARRAY8", func(m *machine) { m.push(m.raw(m.c.U64("bytearray length"))) }},

	')':  {"EMPTY_TUPLE", func(m *machine) { m.tuple(nil) }},
	0x85: {"TUPLE1", func(m *machine) { m.tupleOf(1) }},
	0x86: {"TUPLE2", func(m *machine) { m.tupleOf(2) }},
	0x87: {"TUPLE3", func(m *machine) { m.tupleOf(3) }},
	't':  {"TUPLE", func(m *machine) { m.tuple(m.popMark()) }},
	']':  {"EMPTY_LIST", func(m *machine) { m.charge(40); m.push(&List{}) }},
	'a':  {"APPEND", func(m *machine) { m.extend([]any{m.pop()}) }},
	'e':  {"APPENDS", func(m *machine) { m.extend(m.popMark()) }},
	'l':  {name: "LIST"},
	'}':  {"EMPTY_DICT", func(m *machine) { m.charge(64); m.push(&Dict{}) }},
	's':  {"SETITEM", (*machine).setItem},
	'u':  {"SETITEMS", func(m *machine) { m.setItems(m.popMark()) }},
	'd':  {name: "DICT"},
	0x8f: {"EMPTY_SET", func(m *machine) { m.charge(48); m.push(&Set{}) }},
	0x90: {"ADDITEMS", func(m *machine) { m.addItems(m.popMark()) }},
	0x91: {"FROZENSET", func(m *machine) { m.frozenSet(m.popMark()) }},

	'q':  {"BINPUT", func(m *machine) { m.put(uint32(m.c.U8("memo index"))) }},
	'r':  {"LONG_BINPUT", func(m *machine) { m.put(m.c.U32("memo index")) }},
	0x94: {"MEMOIZE", func(m *machine) { m.put(uint32(m.memo.len())) }},
	'h':  {"BINGET", func(m *machine) { m.get(uint32(m.c.U8("memo index"))) }},
	'j':  {"LONG_BINGET", func(m *machine) { m.get(m.c.U32("memo index")) }},

	'c':  {"GLOBAL", (*machine).global},
	0x93: {"STACK_GLOBAL", (*machine).stackGlobal},
	'R':  {"REDUCE", (*machine).reduce},
	0x81: {"NEWOBJ", (*machine).newObj},
	0x92: {"NEWOBJ_EX", (*machine).newObjEx},
	'b':  {"BUILD", (*machine).build},
	'Q':  {"BINPERSID", (*machine).persID},

	0x80: {"PROTO", (*machine).proto},
	0x95: {"FRAME", (*machine).frame},

	'F': {name: "FLOAT"}, 'I': {name: "INT"}, 'L': {name: "LONG"}, 'S': {name: "STRING"}, 'V': {name: "UNICODE"},
	'P': {name: "PERSID"}, 'g': {name: "GET"}, 'p': {name: "PUT"}, 'i': {name: "INST"}, 'o': {name: "OBJ"},
	0x82: {name: "EXT1"}, 0x83: {name: "EXT2"}, 0x84: {name: "EXT4"},
	0x97: {name: "NEXT_BUFFER"}, 0x98: {name: "READONLY_BUFFER"},
}

func (m *machine) stop() { m.root, m.done = m.pop(), true }

// popOne takes a value, or the mark when there is no value above it, as Python does.
func (m *machine) popOne() {
	if len(m.marks) > 0 && m.floor() == len(m.stack) {
		m.marks = m.marks[:len(m.marks)-1]
		return
	}
	m.pop()
}

func (m *machine) proto() {
	const newest = 5
	if v := m.c.U8("protocol"); v > newest {
		m.fail(tensor.ErrUnsupported, "protocol %d is newer than %d", v, newest)
	}
}

// frame compares the length with what remains. Frames are otherwise of no use to a reader that has
// a buffer of its own.
func (m *machine) frame() {
	if n := m.c.U64("frame length"); n > uint64(max(m.c.Remaining(), 0)) && !m.failed() {
		m.fail(tensor.ErrTruncated, "truncated: frame of %d bytes, but only %d remain", n, m.c.Remaining())
	}
}

func (m *machine) int(v int64) {
	if uint64(v) > math.MaxUint8 { // Go keeps boxed bytes in a table
		m.charge(8)
	}
	m.push(v)
}

// long reads an int of n bytes, little-endian two's complement.
func (m *machine) long(n uint64) {
	b := m.c.Bytes(n, maxInt, "int")
	slices.Reverse(b)
	v := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	if v.IsInt64() {
		m.int(v.Int64())
		return
	}
	m.charge(48 + int64(n))
	m.push(v)
}

// float is big-endian, alone among the numbers.
func (m *machine) float() {
	m.charge(8)
	m.push(math.Float64frombits(bits.ReverseBytes64(m.c.U64("float"))))
}

// py2str is the str of Python 2: text where it is UTF-8, which is how torch.load decodes it.
func (m *machine) py2str(n uint64) {
	v := m.raw(n)
	if s, ok := v.(Bytes); ok && validText(string(s)) {
		v = string(s)
	}
	m.push(v)
}

// tuple copies the items off the stack.
func (m *machine) tuple(items []any) {
	m.charge(24 + 16*int64(len(items)))
	if m.failed() {
		return
	}
	t := &Tuple{Items: slices.Clone(items)}
	clear(items)
	m.push(t)
}

func (m *machine) tupleOf(n int) {
	if m.need(n) {
		items := m.stack[len(m.stack)-n:]
		m.stack = m.stack[:len(m.stack)-n]
		m.tuple(items)
	}
}

func (m *machine) frozenSet(items []any) {
	m.charge(48 + 16*int64(len(items)))
	if !m.failed() {
		m.push(&Set{Items: slices.Clone(items), Frozen: true})
	}
}

func (m *machine) put(i uint32) {
	v := m.top()
	if m.failed() {
		return
	}
	if m.memo.put(i, v) {
		m.charge(16)
		if len(m.memo.sparse) > 0 {
			m.charge(64)
		}
	}
}

func (m *machine) get(i uint32) {
	v, ok := m.memo.get(i)
	if !ok && !m.failed() {
		m.malformed("the memo has no entry %d", i)
	}
	m.push(v)
}

func (m *machine) persID() {
	p := &Persistent{ID: m.pop(), Off: m.off}
	m.charge(48)
	m.persistent = append(m.persistent, p)
	m.push(p)
}

// global reads two lines, the module and the name in it.
func (m *machine) global() {
	module := m.line()
	m.pushGlobal(module, m.line())
}

func (m *machine) line() string {
	var b []byte
	for !m.failed() {
		switch c := m.c.U8("line of GLOBAL"); {
		case c == '\n' && !utf8.Valid(b):
			m.malformed("a line is not UTF-8")
		case c == '\n':
			return string(b)
		case len(b) == maxName:
			m.malformed("a line exceeds the limit of %d bytes", maxName)
		default:
			b = append(b, c)
		}
	}
	return ""
}

func (m *machine) stackGlobal() {
	name, nameOK := m.pop().(string)
	module, moduleOK := m.pop().(string)
	if !nameOK || !moduleOK {
		m.malformed("module and name must be str")
	}
	m.pushGlobal(module, name)
}

// pushGlobal maps the names of Python 2, as Python does for protocols below 3.
func (m *machine) pushGlobal(module, name string) {
	switch module {
	case "__builtin__":
		module = "builtins"
	case "copy_reg":
		module = "copyreg"
	}
	m.charge(64 + int64(len(module)+len(name)))
	m.push(Global{Module: module, Name: name})
}
