package numpy

import "testing"

// No Python source has a NUL; one in a comment was passed over.
func TestNoLiteralHasANUL(t *testing.T) {
	for _, text := range []string{"()\x00", "\x00()", "() # x\x00", "() #\x00\n", "'\x00'", "(1,\x00)"} {
		if v, err := parseLiteral(text, false); err == nil {
			t.Errorf("%q is %v", text, v)
		}
	}
}
