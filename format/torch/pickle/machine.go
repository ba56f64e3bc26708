// Package pickle reads Python pickles of protocols 2 to 5 as data. It looks up no name and calls
// nothing: what a pickle would have Python call becomes a stub that remembers the name and the
// arguments. Memory is bounded whatever the pickle says, and no value is deeper than a pointer, so
// cycles and references that double themselves cost what they take in the file.
package pickle

import (
	"fmt"
	"unicode/utf8"

	"weightfs/format/tensor"
)

const (
	// maxMemory bounds what one pickle's values may take, as charge estimates it. A tensor of a
	// torch checkpoint takes about 800 bytes.
	maxMemory = 768 << 20
	// maxOps bounds the time: about as many opcodes as run in five seconds.
	maxOps = 1 << 28
	// maxStack and maxMarks bound what is open at one time: a tuple's items, and nesting.
	maxStack = 1 << 22
	maxMarks = 1 << 20
	// maxString is the longest str or bytes that is kept; longer ones (arrays that were pickled
	// inline) become Long.
	maxString = 1 << 20
	// maxInt is the size of the longest int, in bytes.
	maxInt = 1 << 10
	// maxName is the longest line of GLOBAL.
	maxName = 4 << 10
)

// A Pickle is what Load returns.
type Pickle struct {
	Root       any
	Persistent []*Persistent // in the order of the file
	Ops        int           // the opcodes that were run
}

// Load runs the pickle at c and leaves c behind its STOP. Faults are those of c. opaque names the
// kind of value that a global makes where that value takes no items and no state; it gives "" for
// every other global.
func Load(c *tensor.Cursor, opaque func(Global) string) (*Pickle, error) {
	m := &machine{c: c, left: maxMemory, opaque: opaque}
	m.run()
	if err := c.Err(); err != nil {
		return nil, say(err)
	}
	return &Pickle{Root: m.root, Persistent: m.persistent, Ops: m.ops}, nil
}

// say puts in front of the cursor's message what was being read.
func say(err error) error {
	fault, ok := err.(*tensor.FormatError)
	if !ok {
		return err
	}
	named := *fault
	named.Msg = "pickle: " + fault.Msg
	return &named
}

// A machine is the state of one pickle: Python's stack with its marks, and the memo.
type machine struct {
	c          *tensor.Cursor
	stack      []any
	marks      []int
	memo       memo
	persistent []*Persistent
	opaque     func(Global) string
	left       int64 // of maxMemory

	op   *opcode // being run
	off  int64   // its offset
	ops  int
	done bool
	root any
}

// An opcode is one instruction; do is nil for those that are known and refused.
type opcode struct {
	name string
	do   func(*machine)
}

func (m *machine) run() {
	for ; !m.done; m.ops++ {
		m.off = m.c.Off()
		code := m.c.U8("opcode")
		m.op = &opcodes[code]
		switch {
		case m.c.Err() != nil:
			return
		case m.op.do == nil && m.op.name == "":
			m.fail(tensor.ErrMalformed, "%#02x is no opcode", code)
		case m.op.do == nil:
			m.fail(tensor.ErrUnsupported, "opcode %s (%#02x) is not of protocols 2 to 5 without extensions", m.op.name, code)
		case m.ops >= maxOps:
			m.fail(tensor.ErrUnsafe, "more opcodes than the limit of %d", maxOps)
		case len(m.stack) > maxStack || len(m.marks) > maxMarks:
			m.fail(tensor.ErrUnsafe, "%d values and %d marks on the stack, the limits are %d and %d",
				len(m.stack), len(m.marks), maxStack, maxMarks)
		default:
			m.op.do(m)
		}
	}
}

// fail records a fault at the opcode that is being run.
func (m *machine) fail(reason error, format string, a ...any) {
	m.c.Fail(m.off, reason, "%s", fmt.Sprintf(format, a...))
}

// malformed is fail for what is wrong with an opcode's operands.
func (m *machine) malformed(format string, a ...any) {
	m.fail(tensor.ErrMalformed, "opcode %s: %s", m.op.name, fmt.Sprintf(format, a...))
}

// charge counts memory that stays in use.
func (m *machine) charge(n int64) {
	if m.left -= n; m.left < 0 {
		m.fail(tensor.ErrUnsafe, "the values exceed the limit of %d bytes of memory", maxMemory)
	}
}

func (m *machine) failed() bool { return m.c.Err() != nil }

func (m *machine) push(v any) { m.stack = append(m.stack, v) }

// floor is where the values since the last mark begin; no opcode but those that take the mark
// reaches below it.
func (m *machine) floor() int {
	if len(m.marks) == 0 {
		return 0
	}
	return m.marks[len(m.marks)-1]
}

// need tells whether there are n values to take.
func (m *machine) need(n int) bool {
	if m.failed() {
		return false
	}
	if have := len(m.stack) - m.floor(); have < n {
		m.malformed("needs %d values, the stack has %d", n, have)
		return false
	}
	return true
}

func (m *machine) pop() any {
	if !m.need(1) {
		return nil
	}
	v := m.stack[len(m.stack)-1]
	m.stack[len(m.stack)-1] = nil
	m.stack = m.stack[:len(m.stack)-1]
	return v
}

// top is the uppermost value, which stays.
func (m *machine) top() any {
	if !m.need(1) {
		return nil
	}
	return m.stack[len(m.stack)-1]
}

// popMark takes the values since the last mark, and the mark. They are valid until the next push.
func (m *machine) popMark() []any {
	if len(m.marks) == 0 {
		m.malformed("there is no mark")
		return nil
	}
	at := m.floor()
	items := m.stack[at:]
	m.stack = m.stack[:at]
	m.marks = m.marks[:len(m.marks)-1]
	return items
}

// text reads a str of n bytes.
func (m *machine) text(n uint64) any {
	v := m.raw(n)
	if s, ok := v.(Bytes); ok {
		if !validText(string(s)) {
			m.malformed("a str of %d bytes is not UTF-8", n)
		}
		return string(s)
	}
	return v
}

// raw reads bytes.
func (m *machine) raw(n uint64) any {
	if n <= maxString {
		m.charge(32 + int64(n))
		return Bytes(m.c.Str(n, maxString, "string"))
	}
	m.charge(32)
	off := m.c.Off()
	m.c.Skip(n, "string")
	return Long{Off: off, Len: int64(n)}
}

// validText is UTF-8 with lone surrogates, as Python's "surrogatepass" writes it.
func validText(s string) bool {
	if utf8.ValidString(s) {
		return true
	}
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			if len(s) < 3 || s[0] != 0xed || s[1]&0xe0 != 0xa0 || s[2]&0xc0 != 0x80 {
				return false
			}
			n = 3
		}
		s = s[n:]
	}
	return true
}
