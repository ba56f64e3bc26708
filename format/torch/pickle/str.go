package pickle

import (
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxRepr bounds what AppendStr writes for anything but a str.
const maxRepr = 1 << 10

// AppendStr appends Python's str() of a value, which is how a key becomes part of a tensor's name:
// 0, True, None, (1, 'a'), torch.float32. Stubs are written as the call that makes them. All but a
// str is cut after some hundred bytes.
func AppendStr(dst []byte, v any) []byte {
	if s, ok := v.(string); ok {
		return append(dst, s...)
	}
	w := writer{dst: dst, limit: len(dst) + maxRepr}
	w.repr(v)
	if len(w.dst) > w.limit {
		w.dst = append(w.dst[:w.limit], "…"...)
	}
	return w.dst
}

// A writer writes repr() and stops soon after its limit.
type writer struct {
	dst   []byte
	limit int
}

func (w *writer) add(s string) { w.dst = append(w.dst, s[:min(len(s), maxRepr)]...) }

func (w *writer) repr(v any) {
	if len(w.dst) > w.limit {
		return
	}
	switch v := v.(type) {
	case nil:
		w.add("None")
	case bool:
		w.add(map[bool]string{true: "True", false: "False"}[v])
	case int64:
		w.dst = strconv.AppendInt(w.dst, v, 10)
	case *big.Int:
		w.add(v.String())
	case float64:
		w.add(formatFloat(v))
	case string:
		w.add(quote(v[:min(len(v), maxRepr)], false))
	case Bytes:
		w.add("b")
		w.add(quote(string(v[:min(len(v), maxRepr)]), true))
	case Long:
		w.add("<" + strconv.FormatInt(v.Len, 10) + " bytes>")
	case Global:
		w.add(v.String())
	case *Persistent:
		w.add("<persistent>")
	case *Object:
		w.call(v)
	default:
		w.container(v)
	}
}

func (w *writer) container(v any) {
	switch v := v.(type) {
	case *Tuple:
		w.list("(", v.Items)
		if len(v.Items) == 1 {
			w.add(",")
		}
		w.add(")")
	case *List:
		w.list("[", v.Items)
		w.add("]")
	case *Set:
		w.list("{", v.Items)
		w.add("}")
	case *Dict:
		w.add("{")
		for i, item := range v.Items {
			if i > 0 {
				w.add(", ")
			}
			if w.repr(item.Key); len(w.dst) > w.limit {
				return
			}
			w.add(": ")
			w.repr(item.Value)
		}
		w.add("}")
	}
}

// list writes items; a list that holds itself ends at the limit, since every level writes a byte.
func (w *writer) list(open string, items []any) {
	w.add(open)
	for i, item := range items {
		if i > 0 {
			w.add(", ")
		}
		if w.repr(item); len(w.dst) > w.limit {
			return
		}
	}
}

func (w *writer) call(o *Object) {
	w.add(className(o))
	w.list("(", o.Args.Items)
	w.add(")")
}

// formatFloat is float.__repr__: the shortest digits that read back, an exponent below 1e-4 and
// from 1e16 on, and always a point or an exponent.
func formatFloat(f float64) string {
	s := strconv.FormatFloat(f, 'e', -1, 64)
	at := strings.IndexByte(s, 'e')
	if at < 0 { // NaN, +Inf, -Inf
		return strings.ToLower(strings.TrimPrefix(s, "+"))
	}
	if exp, _ := strconv.Atoi(s[at+1:]); exp < -4 || exp >= 16 {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// quote is repr() of a str or of bytes.
func quote(s string, bytes bool) string {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	b := []byte{q}
	for i := 0; i < len(s); {
		r, n := rune(s[i]), 1
		if !bytes {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		i += n
		switch {
		case r == rune(q) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n' || r == '\r' || r == '\t':
			b = append(b, '\\', map[rune]byte{'\n': 'n', '\r': 'r', '\t': 't'}[r])
		case r < 0x20 || r == 0x7f || bytes && r > 0x7f:
			b = append(b, '\\', 'x', hexDigits[r>>4], hexDigits[r&15])
		case r != ' ' && !unicode.IsPrint(r):
			b = append(b, strings.Trim(strconv.QuoteRuneToASCII(r), "'")...)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(append(b, q))
}

const hexDigits = "0123456789abcdef"
