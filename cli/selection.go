package cli

import (
	"github.com/spf13/pflag"

	"weightfs/format"
	"weightfs/format/names"
)

// addSelection adds the flags that choose tensors, by the names that they have in the files, and that
// give them other names.
func addSelection(fl *pflag.FlagSet, opt *format.Options) {
	fl.Var(&patternList{list: &opt.Include}, "include", "only tensors whose name matches this shell `glob`, in which * matches dots and slashes too (may be repeated)")
	fl.Var(&patternList{list: &opt.Exclude}, "exclude", "no tensor whose name matches this shell `glob` (may be repeated)")
	fl.Var(&ruleList{rules: &opt.Map}, "map", "other names for tensors: a `rule` s/REGEXP/NAME/ in the manner of sed -E (in NAME \\1 is a group and & the whole match), a file of rules, or llama.cpp: from GGUF's names to those of transformers, for Gemma 2 and later as llama.cpp-gemma, which the metadata chooses (may be repeated)")
}

// repeated is a flag of which every occurrence counts. Its String is not enough to give it again.
type repeated struct{ words []string }

func (r *repeated) Type() string       { return "string" }
func (r *repeated) GetSlice() []string { return r.words }

func (r *repeated) String() string {
	if len(r.words) == 0 {
		return ""
	}
	return r.words[len(r.words)-1]
}

// patternList is a list of globs.
type patternList struct {
	repeated
	list *[]names.Pattern
}

func (l *patternList) Set(s string) error {
	p, err := names.NewPattern(s)
	if err != nil {
		return err
	}
	l.words, *l.list = append(l.words, s), append(*l.list, p)
	return nil
}

// ruleList is rules, each applied to what the ones before it made.
type ruleList struct {
	repeated
	rules **names.Rules
}

func (l *ruleList) Set(s string) error {
	more, err := names.LoadRules(s)
	if err != nil {
		return err
	}
	l.words, *l.rules = append(l.words, s), (*l.rules).Then(more)
	return nil
}

// spelled is how a flag is given so that it has its value again: once for each of its values.
func spelled(f *pflag.Flag) []string {
	values := []string{f.Value.String()}
	if r, ok := f.Value.(interface{ GetSlice() []string }); ok {
		values = r.GetSlice()
	}
	var words []string
	for _, v := range values {
		words = append(words, "--"+f.Name+"="+v)
	}
	return words
}
