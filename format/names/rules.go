package names

import (
	"bufio"
	"embed"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Rules give tensors other names over the same bytes. A rule is a line in the manner of sed -E,
//
//	s/^model\./language_model./
//
// with any character for `/`, \1 for a group and & for the whole. A rule is tried on the name that the
// rules before it made, and changes its first match (all of them with a `g` at the end). Empty lines
// and lines that begin with # are passed over.
type Rules struct {
	text  string
	rules []rule
}

type rule struct {
	match   *regexp.Regexp
	replace string // in the manner of regexp.Expand
	all     bool
	from    string // the built-in rules that it is one of; empty for the user's own
}

//go:embed builtin/*.map
var builtin embed.FS

const (
	maxRulesFile = 1 << 20
	builtinExt   = ".map"
)

// Builtin lists the rules that come with the program.
func Builtin() []string {
	list, err := builtin.ReadDir("builtin")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range list {
		names = append(names, strings.TrimSuffix(e.Name(), builtinExt))
	}
	return names
}

// LoadRules reads the rules that an argument names: a rule itself, rules that come with the program
// (`llama.cpp`), or a file.
func LoadRules(arg string) (*Rules, error) {
	if len(arg) > 1 && arg[0] == 's' && !isWord(arg[1]) {
		return ParseRules(strings.NewReader(arg), "--map")
	}
	if f, err := builtin.Open("builtin/" + arg + builtinExt); err == nil {
		defer f.Close()
		rules, err := ParseRules(f, arg)
		for i := range rules.rules {
			rules.rules[i].from = arg
		}
		return rules, err
	}
	f, err := os.Open(arg)
	if err != nil {
		return nil, fmt.Errorf("%w (rules that come with the program: %s)", err, strings.Join(Builtin(), ", "))
	}
	defer f.Close()
	return ParseRules(f, arg)
}

// ParseRules reads rules, a line each. A fault names the line.
func ParseRules(r io.Reader, name string) (*Rules, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxRulesFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxRulesFile {
		return nil, fmt.Errorf("%s: more than %d bytes of rules", name, maxRulesFile)
	}
	rules := &Rules{text: string(text)}
	lines := bufio.NewScanner(strings.NewReader(rules.text))
	lines.Buffer(nil, maxRulesFile)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		one, err := parseRule(line)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", name, n, err)
		}
		rules.rules = append(rules.rules, one)
	}
	return rules, lines.Err()
}

func parseRule(line string) (rule, error) {
	if len(line) < 2 || line[0] != 's' || isWord(line[1]) {
		return rule{}, fmt.Errorf("%q is no rule: s/REGEXP/REPLACEMENT/", line)
	}
	parts := splitRule(line[2:], line[1])
	if len(parts) != 3 || parts[2] != "" && parts[2] != "g" {
		return rule{}, fmt.Errorf("%q is no rule: s/REGEXP/REPLACEMENT/ or s/REGEXP/REPLACEMENT/g", line)
	}
	match, err := regexp.Compile(parts[0])
	if err != nil {
		return rule{}, err
	}
	if group := perlGroup.FindStringSubmatch(parts[1]); group != nil && match.NumSubexp() > 0 {
		return rule{}, fmt.Errorf(`%q: %s is no group here: \1 is (\$ for a dollar sign)`, line, group[1])
	}
	return rule{match: match, replace: template(parts[1]), all: parts[2] == "g"}, nil
}

// perlGroup is a group as other languages than sed have it.
var perlGroup = regexp.MustCompile(`(?:^|[^\\])(\$(?:\d|\{\w+\}))`)

// splitRule cuts at a separator that no backslash stands before.
func splitRule(s string, sep byte) []string {
	var parts []string
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			if s[i+1] != sep {
				b.WriteByte('\\')
			}
			i++
			b.WriteByte(s[i])
		case s[i] == sep:
			parts = append(parts, b.String())
			b.Reset()
		default:
			b.WriteByte(s[i])
		}
	}
	return append(parts, b.String())
}

// template turns sed's replacement (\1, &, \&) into that of regexp.Expand.
func template(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			if s[i] >= '0' && s[i] <= '9' {
				fmt.Fprintf(&b, "${%c}", s[i])
			} else {
				b.WriteString(strings.ReplaceAll(s[i:i+1], "$", "$$"))
			}
		case s[i] == '&':
			b.WriteString("${0}")
		case s[i] == '$':
			b.WriteString("$$")
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// Apply gives a tensor's other name.
func (r *Rules) Apply(name string) string {
	if r == nil {
		return name
	}
	for _, one := range r.rules {
		name = one.apply(name)
	}
	return name
}

func (r rule) apply(name string) string {
	if r.all {
		return r.match.ReplaceAllString(name, r.replace)
	}
	at := r.match.FindStringSubmatchIndex(name)
	if at == nil {
		return name
	}
	b := r.match.ExpandString([]byte(name[:at[0]]), r.replace, name, at)
	return string(append(b, name[at[1]:]...))
}

// For gives the rules for a model of an architecture, as general.architecture of GGUF names it. Gemma 2
// and later have a norm before and one behind the feed-forward part, so that llama.cpp's ffn_norm is
// another one there than in Llama and the first Gemma: for `llama.cpp` stands `llama.cpp-gemma`.
func (r *Rules) For(architecture string) *Rules {
	const plain, gemma = "llama.cpp", "llama.cpp-gemma"
	if r == nil || architecture == "gemma" || !strings.HasPrefix(architecture, "gemma") {
		return r
	}
	instead, err := LoadRules(gemma)
	if err != nil {
		return r
	}
	chosen := &Rules{text: r.text}
	for i, one := range r.rules {
		switch {
		case one.from != plain:
			chosen.rules = append(chosen.rules, one)
		case i == 0 || r.rules[i-1].from != plain:
			chosen.rules = append(chosen.rules, instead.rules...)
		}
	}
	return chosen
}

// Then gives the rules with others behind them.
func (r *Rules) Then(more *Rules) *Rules {
	if r == nil {
		return more
	}
	return &Rules{text: r.text + "\n" + more.text, rules: append(slices.Clip(r.rules), more.rules...)}
}

// Text is the rules as they were written, which tell them from others.
func (r *Rules) Text() string {
	if r == nil {
		return ""
	}
	return r.text
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.' || c == '-'
}
