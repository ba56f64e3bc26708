package cli

import (
	"strings"
	"testing"
)

func TestParseSumLine(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	for line, want := range map[string]string{
		sum + "  raw/a.raw":            "raw/a.raw",
		sum + " *a.safetensors":        "a.safetensors",
		sum + "  ./a":                  "a",
		sum + "  two  blanks ":         "two  blanks ",
		`\` + sum + `  a\\b\nc\\n`:     "a\\b\nc\\n",
		sum + `  a\\b`:                 `a\\b`,
		sum + "  ":                     "",
		sum + " a":                     "",
		sum[1:] + "  a":                "",
		"g" + sum[1:] + "  a":          "",
		"SHA256 (a) = " + sum:          "",
		"":                             "",
		strings.ToUpper(sum) + "  a":   "a",
		sum + sum + "  a":              "",
		"\\" + strings.Repeat("a", 10): "",
	} {
		name, got, ok := parseSumLine(line)
		if ok != (want != "") || ok && (name != want || got[0] != 0xab) {
			t.Errorf("%q: %q, %v", line, name, ok)
		}
	}
}
