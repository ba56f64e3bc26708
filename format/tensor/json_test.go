package tensor

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

type lazily string

func (l lazily) AppendJSON(dst []byte) []byte { return AppendString(dst, string(l)) }

func TestAppendJSON(t *testing.T) {
	huge, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	for _, test := range []struct {
		value any
		want  string
	}{
		{nil, `null`},
		{true, `true`},
		{-1, `-1`},
		{int64(math.MinInt64), `-9223372036854775808`},
		{uint64(math.MaxUint64), `18446744073709551615`},
		{huge, `123456789012345678901234567890`},
		{1e-6, `0.000001`},
		{math.NaN(), `"NaN"`},
		{math.Inf(1), `"Infinity"`},
		{math.Inf(-1), `"-Infinity"`},
		{"a\"b\\c\n\x7fé", `"a\"b\\c\u000a\u007fé"`},
		{"\xff\xed\xa0\x80", "\"\ufffd\ufffd\ufffd\ufffd\""},
		{[]byte{0, 0xab}, `"00ab"`},
		{[]any{}, `[]`},
		{[]any{nil, []any{"x"}, Object{}}, `[null, ["x"], {}]`},
		{[]uint64{2, 3}, `[2, 3]`},
		{[]int64{-2, 3}, `[-2, 3]`},
		{Object{{"b", 1}, {"a", lazily("x")}}, `{"b": 1, "a": "x"}`},
		{[2]int{1, 2}, `[1,2]`}, // of no kind that KV names
	} {
		got := AppendJSON([]byte("before "), test.value)
		if string(got) != "before "+test.want {
			t.Errorf("%#v is %s, want %s", test.value, got, test.want)
		}
		if !json.Valid([]byte(test.want)) {
			t.Errorf("%s is no JSON", test.want)
		}
	}
}

// Go's own reader gives back any string, but for bytes that are not UTF-8.
func TestAppendStringComesBack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		s := make([]byte, random.IntN(20))
		for i := range s {
			s[i] = byte(random.IntN(256) >> random.IntN(2))
		}
		var back string
		if err := json.Unmarshal(AppendString(nil, string(s)), &back); err != nil || back != string([]rune(string(s))) {
			t.Fatalf("%q comes back as %q, %v", s, back, err)
		}
	}
}
