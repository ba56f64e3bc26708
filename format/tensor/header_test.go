package tensor

import (
	"strings"
	"testing"
)

func TestWarnCountsWhatIsTooMany(t *testing.T) {
	h := &Header{}
	for i := range maxWarnings {
		h.Warn("fault %d", i)
	}
	if len(h.Warnings) != maxWarnings || h.Warnings[maxWarnings-1] != "fault 999" {
		t.Fatalf("%d warnings, the last %q", len(h.Warnings), h.Warnings[len(h.Warnings)-1])
	}
	for range 3 {
		h.Warn("fault")
	}
	if len(h.Warnings) != maxWarnings+1 || h.Warnings[maxWarnings] != "3 more of the like" {
		t.Errorf("%d warnings, the last %q", len(h.Warnings), h.Warnings[len(h.Warnings)-1])
	}
}

func TestWarnCutsLongNames(t *testing.T) {
	h := &Header{}
	h.Warn("%s", "x"+strings.Repeat("ä", maxWarning))
	if w := h.Warnings[0]; len(w) > maxWarning+len("…") || !strings.HasSuffix(w, "ää…") {
		t.Errorf("a warning of %d bytes ends in %q", len(w), w[len(w)-8:])
	}
}
