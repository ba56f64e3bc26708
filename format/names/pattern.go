// Package names selects tensors by their names, and gives them others. How a name becomes a path of the
// tree is for package index.
package names

import (
	"fmt"
	"regexp"
	"strings"
)

// A Pattern is a shell glob over tensor names, in which `*` matches `.` and `/` as well: nobody knows
// by heart how many parts a name has.
type Pattern struct {
	text  string
	match *regexp.Regexp // nil: the name itself
}

// NewPattern reads a glob; one without `*`, `?` and `[` is a name.
func NewPattern(text string) (Pattern, error) {
	if !strings.ContainsAny(text, "*?[") {
		return Pattern{text: text}, nil
	}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteString(".")
		case '\\':
			if i+1 < len(text) {
				i++
			}
			b.WriteString(regexp.QuoteMeta(text[i : i+1]))
		case '[':
			end := strings.IndexByte(text[i+1:], ']')
			if end < 1 {
				b.WriteString(`\[`)
				continue
			}
			class := text[i+1 : i+1+end]
			if class[0] == '!' {
				class = "^" + class[1:]
			}
			b.WriteString("[" + strings.ReplaceAll(class, `\`, `\\`) + "]")
			i += end + 1
		default:
			b.WriteString(regexp.QuoteMeta(text[i : i+1]))
		}
	}
	b.WriteString(`\z`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return Pattern{}, fmt.Errorf("pattern %q: %v", text, err)
	}
	return Pattern{text, re}, nil
}

// String is the pattern as it was written.
func (p Pattern) String() string { return p.text }

// Match tells whether a tensor's name fits.
func (p Pattern) Match(name string) bool {
	if p.match == nil {
		return p.text == name
	}
	return p.match.MatchString(name)
}
