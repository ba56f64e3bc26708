package safetensors

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"weightfs/format/tensor"
)

const (
	lengthSize = 8   // the header's length stands in front of it
	maxDepth   = 127 // serde_json gives up on a container 128 levels deep
)

// A scanner reads the JSON of a header byte by byte, as strictly as serde_json does. encoding/json
// would take fields in any case, merge duplicates and replace bad UTF-8; its Token is slower than
// the reference. The first fault is kept in err; a method that returns false has set it.
type scanner struct {
	text   string // the header, which is valid UTF-8
	pos    int    // of the next byte
	tensor string // the tensor whose record is being read, for messages
	err    *tensor.FormatError
}

// fail records a fault at the byte at of the header.
func (s *scanner) fail(at int, reason error, format string, a ...any) bool {
	if s.err == nil {
		s.err = &tensor.FormatError{Format: Format, Off: lengthSize + int64(at), Tensor: abbreviate(s.tensor, 256),
			Msg: fmt.Sprintf(format, a...), Err: reason}
	}
	return false
}

// syntax records that something else than want stands at pos.
func (s *scanner) syntax(want string) bool {
	found := "the header ends"
	if s.pos < len(s.text) {
		r, _ := utf8.DecodeRuneInString(s.text[s.pos:])
		found = fmt.Sprintf("found %q", r)
	}
	return s.fail(s.pos, tensor.ErrMalformed, "invalid JSON in header: expected %s, %s", want, found)
}

// mismatch records that the value at pos, which belongs to field, is of the wrong kind.
func (s *scanner) mismatch(field, want string) bool {
	found := ""
	switch s.next() {
	case '{':
		found = "an object"
	case '[':
		found = "an array"
	case '"':
		found = "a string"
	case 't', 'f':
		found = "a boolean"
	case 'n':
		found = "null"
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		found = "a number"
	default:
		return s.syntax(want + " for " + field)
	}
	return s.fail(s.pos, tensor.ErrMalformed, "invalid header: %s is %s, expected %s", field, found, want)
}

// next skips white space and tells the byte that follows, 0 at the end. It consumes nothing else.
func (s *scanner) next() byte {
	for ; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// accept consumes c if it is what follows.
func (s *scanner) accept(c byte) bool {
	if s.next() != c {
		return false
	}
	s.pos++
	return true
}

// list reads an array or object; item reads what stands between two commas.
func (s *scanner) list(begin, end byte, item func() bool) bool {
	if !s.accept(begin) {
		return s.syntax(strconv.QuoteRune(rune(begin)))
	}
	if s.accept(end) {
		return true
	}
	for item() {
		if s.accept(end) {
			return true
		}
		if !s.accept(',') {
			return s.syntax(fmt.Sprintf("',' or '%c'", end))
		}
		if s.next() == end {
			return s.fail(s.pos, tensor.ErrMalformed, "invalid JSON in header: trailing comma before '%c'", end)
		}
	}
	return false
}

// key reads a string and the colon behind it.
func (s *scanner) key() (string, bool) {
	if s.next() != '"' {
		return "", s.syntax("a key")
	}
	key, ok := s.str()
	if ok && !s.accept(':') {
		return "", s.syntax("':'")
	}
	return key, ok
}

// str reads a string. Without an escape, as nearly all are, it is a part of the header.
func (s *scanner) str() (string, bool) {
	if !s.accept('"') {
		return "", s.syntax("a string")
	}
	for i := s.pos; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			v := s.text[s.pos:i]
			s.pos = i + 1
			return v, true
		case c == '\\':
			return s.escaped(i)
		case c < ' ':
			return "", s.fail(i, tensor.ErrMalformed, "invalid JSON in header: control character %#02x in a string", c)
		}
	}
	return "", s.fail(len(s.text), tensor.ErrMalformed, "invalid JSON in header: a string is not closed")
}

// escaped reads the rest of a string whose first backslash is at i.
func (s *scanner) escaped(i int) (string, bool) {
	var b strings.Builder
	b.WriteString(s.text[s.pos:i])
	for s.pos = i; s.pos < len(s.text); {
		switch c := s.text[s.pos]; {
		case c == '"':
			s.pos++
			return b.String(), true
		case c == '\\':
			r, ok := s.escape()
			if !ok {
				return "", false
			}
			b.WriteRune(r)
		case c < ' ':
			return "", s.fail(s.pos, tensor.ErrMalformed, "invalid JSON in header: control character %#02x in a string", c)
		default:
			b.WriteByte(c)
			s.pos++
		}
	}
	return "", s.fail(len(s.text), tensor.ErrMalformed, "invalid JSON in header: a string is not closed")
}

// escape reads one escape, or the two that make a surrogate pair.
func (s *scanner) escape() (rune, bool) {
	at := s.pos
	s.pos++
	if s.pos == len(s.text) {
		return 0, s.syntax("an escape")
	}
	c := s.text[s.pos]
	s.pos++
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), true
	}
	if c != 'u' {
		s.pos--
		return 0, s.syntax(`an escape that JSON has`)
	}
	r, ok := s.hex4()
	if !ok || !utf16.IsSurrogate(r) {
		return r, ok
	}
	if strings.HasPrefix(s.text[s.pos:], `\u`) {
		s.pos += 2
		low, ok := s.hex4()
		if !ok {
			return 0, false
		}
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, true
		}
	}
	return 0, s.fail(at, tensor.ErrMalformed, "invalid JSON in header: lone surrogate \\u%04x", r)
}

// hex4 reads the four digits of a \u escape.
func (s *scanner) hex4() (rune, bool) {
	end := min(s.pos+4, len(s.text))
	for i := s.pos; i < end; i++ {
		if strings.IndexByte("0123456789abcdefABCDEF", s.text[i]) < 0 {
			s.pos = i
			return 0, s.syntax("a hexadecimal digit")
		}
	}
	n, err := strconv.ParseUint(s.text[s.pos:end], 16, 16)
	if err != nil || end < s.pos+4 {
		s.pos = len(s.text)
		return 0, s.syntax("four hexadecimal digits")
	}
	s.pos = end
	return rune(n), true
}

// uint reads an unsigned integer of 64 bits, as the reference does: no sign, fraction or exponent.
func (s *scanner) uint(field string) (uint64, bool) {
	c := s.next()
	start, n := s.pos, uint64(0)
	for ; isDigit(c); c = s.at(s.pos) {
		n = n*10 + uint64(c-'0')
		s.pos++
	}
	digits := s.pos - start
	if digits == 0 || digits > 19 || digits > 1 && s.text[start] == '0' || c == '.' || c|0x20 == 'e' {
		s.pos = start
		return s.oddUint(field)
	}
	return n, true
}

// oddUint is uint for what is not a plain number of up to 19 digits.
func (s *scanner) oddUint(field string) (uint64, bool) {
	if c := s.next(); c != '-' && !isDigit(c) {
		return 0, s.mismatch(field, "an unsigned integer")
	}
	at := s.pos
	number, ok := s.number()
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, s.fail(at, tensor.ErrMalformed, "invalid header: %s: %s is not an unsigned integer of 64 bits", field, abbreviate(number, 40))
	}
	return n, true
}

// number reads a number of JSON's grammar; one that float64 cannot hold is refused, as by serde_json.
func (s *scanner) number() (string, bool) {
	start := s.pos
	if s.at(s.pos) == '-' {
		s.pos++
	}
	if s.at(s.pos) == '0' && isDigit(s.at(s.pos+1)) {
		return "", s.fail(s.pos, tensor.ErrMalformed, "invalid JSON in header: a number with a leading zero")
	}
	if !s.digits() {
		return "", false
	}
	if s.at(s.pos) == '.' {
		s.pos++
		if !s.digits() {
			return "", false
		}
	}
	if s.at(s.pos)|0x20 == 'e' {
		s.pos++
		if c := s.at(s.pos); c == '+' || c == '-' {
			s.pos++
		}
		if !s.digits() {
			return "", false
		}
	}
	number := s.text[start:s.pos]
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		return "", s.fail(start, tensor.ErrTooLarge, "invalid JSON in header: number %s out of range", abbreviate(number, 40))
	}
	return number, true
}

// digits reads one digit or more.
func (s *scanner) digits() bool {
	if !isDigit(s.at(s.pos)) {
		return s.syntax("a digit")
	}
	for isDigit(s.at(s.pos)) {
		s.pos++
	}
	return true
}

// skip reads a value of any kind that nothing is made of; depth is the number of containers it is in.
func (s *scanner) skip(depth int) bool {
	c := s.next()
	if (c == '{' || c == '[') && depth >= maxDepth {
		return s.fail(s.pos, tensor.ErrTooLarge, "invalid JSON in header: nesting is deeper than the recursion limit of %d levels", maxDepth)
	}
	switch {
	case c == '{':
		return s.list('{', '}', func() bool {
			_, ok := s.key()
			return ok && s.skip(depth+1)
		})
	case c == '[':
		return s.list('[', ']', func() bool { return s.skip(depth + 1) })
	case c == '"':
		_, ok := s.str()
		return ok
	case c == '-' || isDigit(c):
		_, ok := s.number()
		return ok
	}
	return s.literal("true") || s.literal("false") || s.literal("null") || s.syntax("a value")
}

// literal consumes a word if it is what follows.
func (s *scanner) literal(word string) bool {
	s.next()
	if !strings.HasPrefix(s.text[s.pos:], word) {
		return false
	}
	s.pos += len(word)
	return true
}

// at is the byte at i, 0 behind the end.
func (s *scanner) at(i int) byte {
	if i < len(s.text) {
		return s.text[i]
	}
	return 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// abbreviate keeps a text from the file short enough for a message, which quotes it.
func abbreviate(s string, limit int) string {
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}
