package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

func TestHelpHasEveryFlagOnNarrowLines(t *testing.T) {
	root := testRoot()
	for _, c := range append(verbs(root), root) {
		text := usageText(c)
		if !strings.Contains(text, usageLine(c)) && c != root {
			t.Errorf("help of %s lacks its usage", c.Name())
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			_, usage := flagUsage(f)
			words := strings.Join(strings.Fields(text), " ")
			if has := strings.Contains(text, "--"+f.Name) && strings.Contains(words, usage); has == f.Hidden && f.Name != "help" {
				t.Errorf("help of %s: --%s %t, hidden %t", c.Name(), f.Name, has, f.Hidden)
			}
		})
		for line := range strings.Lines(text) {
			if utf8.RuneCountInString(line) > helpWidth+1 || strings.Contains(line, "[=") {
				t.Errorf("help of %s: %q", c.Name(), line)
			}
		}
	}
}
