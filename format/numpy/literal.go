package numpy

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"
)

// A literal is a parser of Python literals, as far as a header can hold them: dictionaries whose
// keys are strings, tuples, lists, strings, integers, True, False and None. An expression is no
// literal. (What Python's ast.literal_eval takes beyond that no header can make use of.)
type literal struct {
	s     string
	i     int
	longs bool // integers may end in L, as Python 2 wrote them
	depth int
}

// A dict is a dictionary's last value of each key.
type dict map[string]any

// A tuple differs from a list ([]any).
type tuple []any

const maxDepth = 32

// parseLiteral gives string, *big.Int, bool, nil, tuple, []any or dict.
func parseLiteral(s string, longs bool) (any, error) {
	p := &literal{s: s, longs: longs}
	v, err := p.value()
	if err == nil && p.peek() != 0 {
		err = p.unexpected("after the end")
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// peek is the first byte behind space and comments; 0 at the end.
func (p *literal) peek() byte {
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case c == '#':
			n := strings.IndexAny(p.s[p.i:], "\r\n\x00")
			if n < 0 {
				n = len(p.s) - p.i
			}
			p.i += n
		case strings.IndexByte(" \t\f\r\n", c) >= 0:
			p.i++
		case c == '\\' && p.continued() > 0:
			p.i += p.continued()
		case c == 0: // no Python source has one; 0 must not be taken for the end
			return 0xff
		default:
			return c
		}
	}
	return 0
}

// continued is the length of a backslash and the line end behind it; another line must follow.
func (p *literal) continued() int {
	n := p.newline(p.i + 1)
	if n == 0 || p.i+1+n == len(p.s) {
		return 0
	}
	return 1 + n
}

// newline is the length of the line end at i, 0 where there is none.
func (p *literal) newline(i int) int {
	switch {
	case strings.HasPrefix(p.s[min(i, len(p.s)):], "\r\n"):
		return 2
	case i < len(p.s) && (p.s[i] == '\n' || p.s[i] == '\r'):
		return 1
	}
	return 0
}

func (p *literal) unexpected(where string) error {
	if p.i >= len(p.s) {
		return fmt.Errorf("header ends %s", where)
	}
	r, _ := utf8.DecodeRuneInString(p.s[p.i:])
	return fmt.Errorf("unexpected %q %s", r, where)
}

// take passes over c if it is next.
func (p *literal) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.i++
	return true
}

func (p *literal) value() (any, error) {
	c := p.peek()
	switch {
	case c == '(' || c == '[' || c == '{':
		if p.depth++; p.depth > maxDepth {
			return nil, fmt.Errorf("nested deeper than %d", maxDepth)
		}
		defer func() { p.depth-- }()
		p.i++
		return p.container(c)
	case '0' <= c && c <= '9' || c == '-' || c == '+':
		return p.integer()
	case c == '\'' || c == '"':
		return p.strings()
	case isWord(c):
		return p.word()
	}
	return nil, p.unexpected("where a value should be")
}

func (p *literal) container(open byte) (any, error) {
	switch open {
	case '{':
		return p.dict()
	case '[':
		items, _, err := p.items(']')
		return items, err
	}
	items, comma, err := p.items(')')
	if len(items) == 1 && !comma {
		return items[0], err // no tuple, but something in parentheses
	}
	return tuple(items), err
}

// items are the values up to end; comma tells whether there was any.
func (p *literal) items(end byte) (items []any, comma bool, err error) {
	for !p.take(end) {
		v, err := p.value()
		if err != nil {
			return nil, false, err
		}
		items = append(items, v)
		if p.take(',') {
			comma = true
		} else if p.peek() != end {
			return nil, false, p.unexpected(fmt.Sprintf("where ',' or %q should be", end))
		}
	}
	return items, comma, nil
}

func (p *literal) dict() (dict, error) {
	d := dict{}
	for !p.take('}') {
		key, err := p.value()
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok {
			return nil, errors.New("a key is no string")
		}
		if !p.take(':') {
			return nil, p.unexpected("where ':' should be")
		}
		if d[name], err = p.value(); err != nil {
			return nil, fmt.Errorf("value of %q: %w", name, err)
		}
		if !p.take(',') && p.peek() != '}' {
			return nil, p.unexpected(fmt.Sprintf("behind the value of %q", name))
		}
	}
	return d, nil
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
}

// run takes the letters and digits that come next.
func (p *literal) run() string {
	start := p.i
	for p.i < len(p.s) && isWord(p.s[p.i]) {
		p.i++
	}
	return p.s[start:p.i]
}

// word is a constant or a string with a prefix.
func (p *literal) word() (any, error) {
	start := p.i
	switch w := p.run(); w {
	case "True":
		return true, nil
	case "False":
		return false, nil
	case "None":
		return nil, nil
	default:
		if p.i < len(p.s) && (p.s[p.i] == '\'' || p.s[p.i] == '"') {
			p.i = start
			return p.strings()
		}
		return nil, fmt.Errorf("%q is no literal", w)
	}
}

// integer follows Python: a sign, digits of some base, single underscores between them.
func (p *literal) integer() (any, error) {
	negative := false
	if c := p.s[p.i]; c == '-' || c == '+' {
		negative = c == '-'
		p.i++
		p.peek()
	}
	digits := p.run()
	if p.longs {
		digits = strings.TrimSuffix(digits, "L")
	}
	if p.i < len(p.s) && p.s[p.i] == '.' {
		return nil, fmt.Errorf("%q is no integer", digits+".")
	}
	n, ok := new(big.Int).SetString(digits, 0)
	// Go's base 0 takes 017 as octal, Python takes it as an error; nothing but zeros is a zero to both.
	if !ok || len(digits) > 1 && digits[0] == '0' && (isDigit(digits[1]) || digits[1] == '_') && n.Sign() != 0 {
		return nil, fmt.Errorf("%q is no integer", digits)
	}
	if negative {
		n.Neg(n)
	}
	return n, nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
