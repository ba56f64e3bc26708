package cli

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDidYouMean(t *testing.T) {
	verbs := []string{"mount", "umount", "ls", "cat", "status", "verify"}
	for word, want := range map[string]string{
		"mont": `did you mean "mount"?`, "mnout": "otherwise", "moutn": `did you mean "mount"?`, "unmount": `did you mean "umount"?`,
		"sl": "otherwise", "lss": `did you mean "ls"?`, "act": `did you mean "cat"?`, "stat": "otherwise", "statis": `did you mean "status"?`,
		"xyzzy": "otherwise", "": "otherwise", "verfiy": `did you mean "verify"?`,
	} {
		if got := didYouMean(word, verbs, "otherwise"); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	word := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) || d < len(a)-len(b) {
			t.Errorf("%d", d)
		}
	})
}
