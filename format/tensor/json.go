package tensor

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"
)

// A KV is one key with its value: nil, bool, int, int64, uint64, *big.Int, float64, string, []byte, []any,
// []uint64, []int64, Object, or a Lazy.
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
		return append(hex.AppendEncode(append(dst, '"'), v), '"')
	case []any:
		return appendArray(dst, v, AppendJSON)
	case []uint64:
		return AppendShape(dst, v)
	case []int64:
		return appendArray(dst, v, func(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) })
	case Object:
		return v.appendJSON(dst)
	case Lazy:
		return v.AppendJSON(dst)
	}
	b, err := json.Marshal(value)
	if err != nil {
		return AppendString(dst, err.Error())
	}
	return append(dst, b...)
}

func (o Object) appendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for i, kv := range o {
		if i > 0 {
			dst = append(dst, ',', ' ')
		}
		dst = AppendString(dst, kv.Key)
		dst = append(dst, ':', ' ')
		dst = AppendJSON(dst, kv.Value)
	}
	return append(dst, '}')
}

func appendArray[T any](dst []byte, list []T, item func([]byte, T) []byte) []byte {
	dst = append(dst, '[')
	for i, x := range list {
		if i > 0 {
			dst = append(dst, ',', ' ')
		}
		dst = item(dst, x)
	}
	return append(dst, ']')
}

// AppendShape renders a shape as a JSON array: [2, 3].
func AppendShape(dst []byte, shape []uint64) []byte {
	return appendArray(dst, shape, func(dst []byte, dim uint64) []byte { return strconv.AppendUint(dst, dim, 10) })
}

const hexDigits = "0123456789abcdef"

// AppendString renders a JSON string. What is not UTF-8 becomes U+FFFD.
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
