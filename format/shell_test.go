package format_test

import (
	"os/exec"
	"testing"

	"weightfs/format"
)

func TestShellQuoteIsOneWordOfAShell(t *testing.T) {
	for _, s := range []string{"", "a/b-c_d.e+f@g%h:i,j=k", "a b", "it's", `"$HOME"`, "~", "a*", `\`, "#", "é", "two\nlines"} {
		out, err := exec.Command("sh", "-c", "printf %s/ "+format.ShellQuote(s)).Output()
		if err != nil || string(out) != s+"/" {
			t.Errorf("%q is quoted as %s: %q, %v", s, format.ShellQuote(s), out, err)
		}
	}
	if s := "raw/a-b.raw"; format.ShellQuote(s) != s {
		t.Errorf("%q is quoted", s)
	}
}
