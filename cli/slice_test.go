package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSliceTakesEllipsisAndBrackets(t *testing.T) {
	whole := []span{{hi: 4}, {hi: 5}, {hi: 6}}
	last := []span{{hi: 4}, {hi: 5}, {lo: 2, hi: 3, index: true}}
	for text, want := range map[string][]span{
		"": whole, "...": whole, "[...]": whole, "[]": whole, "..., 2": last, "[:, :, 2]": last,
		"1, ..., :2": {{lo: 1, hi: 2, index: true}, {hi: 5}, {hi: 2}}, "1,2,3,...": {{1, 2, true}, {2, 3, true}, {3, 4, true}},
	} {
		got, err := parseSlice(text, []uint64{4, 5, 6})
		if err != nil || !cmp.Equal(got, want, cmp.AllowUnexported(span{})) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"..., ...", "::2", "1,2,3,4", "4", "[1", "1,,2"} {
		if _, err := parseSlice(text, []uint64{4, 5, 6}); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
