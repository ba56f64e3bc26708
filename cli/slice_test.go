package cli

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSliceTakesEllipsisAndBrackets(t *testing.T) {
	all := []span{whole(4), whole(5), whole(6)}
	index := func(i uint64) span { return span{start: i, step: 1, n: 1, index: true} }
	last := []span{whole(4), whole(5), index(2)}
	for text, want := range map[string][]span{
		"": all, "...": all, "[...]": all, "[]": all, "..., 2": last, "[:, :, 2]": last,
		"1, ..., :2": {index(1), whole(5), whole(2)}, "1,2,3,...": {index(1), index(2), index(3)},
	} {
		got, err := parseSlice(text, []uint64{4, 5, 6})
		if err != nil || !cmp.Equal(got, want, cmp.AllowUnexported(span{})) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"..., ...", "::0", ":::", "::x", "1,2,3,4", "4", "-5", "[1", "1,,2", "99999999999999999999"} {
		if _, err := parseSlice(text, []uint64{4, 5, 6}); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// What NumPy gives of arange(7) for the same words.
func TestSliceStepsAsNumPy(t *testing.T) {
	for text, want := range map[string]string{
		"::2":        "[0 2 4 6]",
		"1::2":       "[1 3 5]",
		"1:6:2":      "[1 3 5]",
		"::3":        "[0 3 6]",
		"::7":        "[0]",
		"::100":      "[0]",
		"5:2":        "[]",
		"2:5:1":      "[2 3 4]",
		":-1:2":      "[0 2 4]",
		"-3::2":      "[4 6]",
		"::-1":       "[6 5 4 3 2 1 0]",
		"::-2":       "[6 4 2 0]",
		"5::-2":      "[5 3 1]",
		"5:1:-2":     "[5 3]",
		":2:-1":      "[6 5 4 3]",
		"-2:0:-3":    "[5 2]",
		"2:5:-1":     "[]",
		"100::-3":    "[6 3 0]",
		"-100:100:3": "[0 3 6]",
		"-100::-1":   "[]",
		":-100:-1":   "[6 5 4 3 2 1 0]",
		"99999999999999999999::-9223372036854775808": "[6]",
		"1:99999999999999999999:9223372036854775807": "[1]",
		" 1 : 5 : 3 ": "[1 4]",
	} {
		part, err := parseSlice(text, []uint64{7})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got := []uint64{}
		for i := range part[0].n {
			got = append(got, part[0].at(i))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%q: %v, want %s", text, got, want)
		}
	}
	empty, err := parseSlice("::2", []uint64{0})
	if err != nil || empty[0].n != 0 {
		t.Errorf("of an empty dimension: %v, %v", empty, err)
	}
}
