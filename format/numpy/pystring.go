package numpy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// strings is one string or several side by side, which Python joins.
func (p *literal) strings() (string, error) {
	var b strings.Builder
	for {
		if err := p.string(&b); err != nil {
			return "", err
		}
		if c := p.peek(); c != '\'' && c != '"' && !p.prefixed() {
			return b.String(), nil
		}
	}
}

// prefixed tells whether a string with a prefix comes next.
func (p *literal) prefixed() bool {
	n := strings.IndexAny(p.s[p.i:], `'"`)
	return n == 1 && strings.IndexByte("uUrR", p.s[p.i]) >= 0
}

// string appends one string. Its prefix may be u or r; bytes and formatted strings are no str.
func (p *literal) string(b *strings.Builder) error {
	raw := false
	switch prefix := p.run(); prefix {
	case "", "u", "U":
	case "r", "R":
		raw = true
	default:
		return fmt.Errorf("a string with the prefix %q", prefix)
	}
	quote := p.s[p.i : p.i+1]
	if long := strings.Repeat(quote, 3); strings.HasPrefix(p.s[p.i:], long) {
		quote = long
	}
	p.i += len(quote)
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case strings.HasPrefix(p.s[p.i:], quote):
			p.i += len(quote)
			return nil
		case c == 0, len(quote) == 1 && (c == '\n' || c == '\r'):
			return p.unexpected("in a string")
		case c == '\\' && p.i+1 < len(p.s):
			if err := p.escape(b, raw); err != nil {
				return err
			}
		default:
			b.WriteByte(c)
			p.i++
		}
	}
	return errors.New("a string has no end")
}

var escapes = map[byte]byte{
	'\\': '\\', '\'': '\'', '"': '"', 'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
}

// escape appends what a backslash and what follows it stand for; of an unknown one both stay.
func (p *literal) escape(b *strings.Builder, raw bool) error {
	c := p.s[p.i+1]
	if raw {
		b.WriteString(p.s[p.i : p.i+2])
		p.i += 2
		return nil
	}
	if e, ok := escapes[c]; ok {
		b.WriteByte(e)
		p.i += 2
		return nil
	}
	if n := p.newline(p.i + 1); n > 0 {
		p.i += 1 + n
		return nil
	}
	switch {
	case '0' <= c && c <= '7':
		n := 1
		for n < 3 && p.i+1+n < len(p.s) && '0' <= p.s[p.i+1+n] && p.s[p.i+1+n] <= '7' {
			n++
		}
		return p.code(b, 1, n, 8)
	case c == 'x':
		return p.code(b, 2, 2, 16)
	case c == 'u':
		return p.code(b, 2, 4, 16)
	case c == 'U':
		return p.code(b, 2, 8, 16)
	case c == 'N':
		return errors.New(`the escape \N in a string`)
	}
	b.WriteString(p.s[p.i : p.i+2])
	p.i += 2
	return nil
}

// code appends the character whose number is the n digits behind the first skip bytes.
func (p *literal) code(b *strings.Builder, skip, n, base int) error {
	if p.i+skip+n > len(p.s) {
		return errors.New("a string has no end")
	}
	digits := p.s[p.i+skip : p.i+skip+n]
	r, err := strconv.ParseUint(digits, base, 32)
	if err != nil || r > utf8.MaxRune {
		return fmt.Errorf("the escape %q in a string", p.s[p.i:p.i+skip+n])
	}
	b.WriteRune(rune(r))
	p.i += skip + n
	return nil
}
