package tensor

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"
)

// A KV is one key with its value: nil, bool, int64, uint64, *big.Int, float64, string, []byte,
// []any, Object, or a Lazy.
type KV struct {
	Key   string
	Value any
}

// An Object is a JSON object whose order is kept.
type Object []KV

// Get finds the value of a key; nil when there is none.
func (o Object) Get(key string) any {
	for _, kv := range o {
		if kv.Key == key {
			return kv.Value
		}
	}
	return nil
}

// A Lazy value costs nothing until it is rendered: an array of 100,000 strings stays in its file.
type Lazy interface {
	AppendJSON(dst []byte) []byte
}

// AppendJSON renders a value of the kinds that KV names. NaN and infinities are strings, since JSON
// has no such numbers; bytes that are not UTF-8 become U+FFFD; a []byte is hexadecimal digits.
func AppendJSON(dst []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case uint64:
		return strconv.AppendUint(dst, v, 10)
	case *big.Int:
		return v.Append(dst, 10)
	case float64:
		return appendFloat(dst, v)
	case string:
		return AppendString(dst, v)
	case []byte:
		dst = append(dst, '"')
		for _, b := range v {
			dst = append(dst, hexDigits[b>>4], hexDigits[b&15])
		}
		return append(dst, '"')
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',', ' ')
			}
			dst = AppendJSON(dst, e)
		}
		return append(dst, ']')
	case []uint64:
		return AppendShape(dst, v)
	case []int64:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',', ' ')
			}
			dst = strconv.AppendInt(dst, e, 10)
		}
		return append(dst, ']')
	case Object:
		dst = append(dst, '{')
		for i, kv := range v {
			if i > 0 {
				dst = append(dst, ',', ' ')
			}
			dst = AppendString(dst, kv.Key)
			dst = append(dst, ':', ' ')
			dst = AppendJSON(dst, kv.Value)
		}
		return append(dst, '}')
	case Lazy:
		return v.AppendJSON(dst)
	}
	b, err := json.Marshal(value)
	if err != nil {
		return AppendString(dst, err.Error())
	}
	return append(dst, b...)
}

const hexDigits = "0123456789abcdef"

// AppendShape renders a shape as a JSON array.
func AppendShape(dst []byte, shape []uint64) []byte {
	dst = append(dst, '[')
	for i, dim := range shape {
		if i > 0 {
			dst = append(dst, ',', ' ')
		}
		dst = strconv.AppendUint(dst, dim, 10)
	}
	return append(dst, ']')
}

// AppendString renders a JSON string.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
			i++
		case c < 0x20 || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			i++
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, "\ufffd"...)
			} else {
				dst = append(dst, s[i:i+n]...)
			}
			i += n
		}
	}
	return append(dst, '"')
}

func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	b, err := json.Marshal(f)
	if err != nil {
		return append(dst, "null"...)
	}
	return append(dst, b...)
}
