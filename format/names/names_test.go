package names

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPatternStarMatchesDotsAndSlashes(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*q_proj*", "model.layers.0.self_attn.q_proj.weight", true},
		{"a*c", "a/b.c", true}, {"a?c", "a.c", true}, {"a?c", "abbc", false},
		{"[ab]*", "b.x", true}, {"[!ab]*", "b.x", false}, {"[", "[", true},
		{"a.b", "axb", false}, {"a.b*", "axb", false}, {`a\*`, "a*", true}, {"*", "", true}, {"*\n*", "a\nb", true},
	} {
		p, err := NewPattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if p.Match(c.name) != c.want {
			t.Errorf("%q on %q: %v", c.pattern, c.name, !c.want)
		}
	}
}

func TestRules(t *testing.T) {
	for _, c := range []struct{ rules, name, want string }{
		{`s/^model\.//`, "model.model.x", "model.x"},
		{`s,\.,/,g`, "a.b.c", "a/b/c"},
		{`s/\./\//g`, "a.b.c", "a/b/c"},
		{`s/([0-9]+)/<\1&>/`, "a1b2", "a<11>b2"},
		{`s/a/$1\&/`, "a", "$1&"},
		{`s/(a)/\$1/`, "a", "$1"},
		{`s/(a)/$/`, "a", "$"},
		{"# no rule\n\ns/a/b/\ns/b/c/", "a", "c"},
	} {
		r, err := ParseRules(strings.NewReader(c.rules), "test")
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Apply(c.name); got != c.want {
			t.Errorf("%q on %q gives %q, want %q", c.rules, c.name, got, c.want)
		}
	}
}

func TestBadRuleNamesItsLine(t *testing.T) {
	for _, text := range []string{"s/a/b", "x", "s/(/b/", "s/a/b/q", "s/a"} {
		_, err := ParseRules(strings.NewReader("# first\n"+text), "rules")
		if err == nil || !strings.Contains(err.Error(), "rules: line 2: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRuleWithGroupOfPerl(t *testing.T) {
	for _, text := range []string{`s/(a)/$1/`, `s/(a)/x${1}/`, `s/(a)b/b$1/g`} {
		_, err := ParseRules(strings.NewReader(text), "rules")
		if err == nil || !strings.Contains(err.Error(), `is no group here: \1 is`) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRulesOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules")
	if err := os.WriteFile(path, []byte("s/a/b/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := LoadRules(path)
	if err != nil || r.Apply("a") != "b" {
		t.Errorf("%v, %v", r, err)
	}
	if _, err := LoadRules(path + "2"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "llama.cpp-gemma") {
		t.Errorf("a file that is missing: %v", err)
	}
	if _, err := ParseRules(strings.NewReader(strings.Repeat("#\n", maxRulesFile)), "long"); err == nil {
		t.Error("two mebibytes of rules are accepted")
	}
}

func TestBuiltinRulesFitLlama(t *testing.T) {
	r, err := LoadRules("llama.cpp")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"blk.12.attn_q.weight":     "model.layers.12.self_attn.q_proj.weight",
		"blk.0.ffn_down.weight":    "model.layers.0.mlp.down_proj.weight",
		"blk.0.ffn_norm.weight":    "model.layers.0.post_attention_layernorm.weight",
		"token_embd.weight":        "model.embed_tokens.weight",
		"output_norm.weight":       "model.norm.weight",
		"output.weight":            "lm_head.weight",
		"blk.3.attn_output.weight": "model.layers.3.self_attn.o_proj.weight",
	} {
		if got := r.Apply(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

func TestGemmaHasNormsOfItsOwn(t *testing.T) {
	r, err := LoadRules("llama.cpp")
	if err != nil {
		t.Fatal(err)
	}
	own, err := ParseRules(strings.NewReader(`s/^model\./m./`), "test")
	if err != nil {
		t.Fatal(err)
	}
	for architecture, want := range map[string]string{
		"llama": "m.layers.0.post_attention_layernorm.weight", "gemma": "m.layers.0.post_attention_layernorm.weight",
		"gemma2": "m.layers.0.pre_feedforward_layernorm.weight", "gemma3": "m.layers.0.pre_feedforward_layernorm.weight",
	} {
		if got := r.Then(own).For(architecture).Apply("blk.0.ffn_norm.weight"); got != want {
			t.Errorf("%s: %s, want %s", architecture, got, want)
		}
	}
}
