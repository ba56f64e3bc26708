package index

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
)

// maxPart bounds a part of a path in bytes, so that with an extension of up to 12 bytes and `~2` it
// stays below NAME_MAX (255).
const maxPart = 240

// hashSuffix is the length of `~` and 16 hexadecimal digits, which end a part that was cut.
const hashSuffix = 17

// splitName calls dir for each directory of a tensor's name, and returns the rest, the stem. The name
// is split at every `/`, and at every `.` but the last one behind the last `/`: `m.x.weight.absmax` is
// m, x and weight.absmax. So a directory never holds a dot, and with its extension every file does.
func splitName(name string, dir func(part string)) (stem string) {
	tail := strings.LastIndexByte(name, '/') + 1
	if tail > 0 {
		start := 0
		for i := 0; i < tail; i++ {
			if c := name[i]; c == '/' || c == '.' {
				dir(name[start:i])
				start = i + 1
			}
		}
	}
	last := strings.LastIndexByte(name[tail:], '.') + tail
	start := tail
	for i := tail; i < last; i++ {
		if name[i] == '.' {
			dir(name[start:i])
			start = i + 1
		}
	}
	return name[start:]
}

// plainPart tells that a part needs no escaping, which is nearly every part: the caller can then
// share the name's own bytes.
func plainPart(part string) bool {
	if part == "" || part[0] == '.' || len(part) >= maxPart {
		return false
	}
	for i := 0; i < len(part); i++ {
		if c := part[i]; c < ' ' || c == '%' || c == '/' || c >= 0x7f {
			return false
		}
	}
	return true
}

// escapePart writes a part so that it can be a file name: a leading `.`, `%`, `/`, control
// characters and bytes that are not UTF-8 become %XX, the empty part `%`. The mapping is injective.
func escapePart(part string) string {
	if plainPart(part) {
		return part
	}
	if part == "" {
		return "%"
	}
	var b strings.Builder
	for i := 0; i < len(part); {
		r, n := utf8.DecodeRuneInString(part[i:])
		bad := r == utf8.RuneError && n == 1
		if bad || r == '%' || r == '/' || unicode.IsControl(r) || r == '.' && i == 0 {
			for _, c := range []byte(part[i : i+n]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		} else {
			b.WriteString(part[i : i+n])
		}
		i += n
	}
	return shorten(b.String())
}

// shorten cuts a part of over 240 bytes and marks it with a hash of the whole. A part that looks
// as if it had been cut gets a hash too, so that no name can be chosen to land on another's.
func shorten(part string) string {
	looksCut := len(part) == maxPart && part[maxPart-hashSuffix] == '~'
	if len(part) <= maxPart && !looksCut {
		return part
	}
	cut := maxPart - hashSuffix
	for cut > 0 && !utf8.RuneStart(part[cut]) {
		cut--
	}
	for back := 1; back <= 2; back++ { // never inside a %XX
		if cut >= back && part[cut-back] == '%' {
			cut -= back
			break
		}
	}
	return fmt.Sprintf("%s~%016x", part[:cut], xxh3.HashString(part))
}

// Numbered is the name of the n-th (from 2) tensor whose stem is taken.
func Numbered(stem string, n int) string {
	suffix := fmt.Sprintf("~%d", n)
	if len(stem)+len(suffix) > maxPart+2 {
		cut := maxPart + 2 - len(suffix)
		for cut > 0 && !utf8.RuneStart(stem[cut]) {
			cut--
		}
		stem = stem[:cut]
	}
	return stem + suffix
}

// Flat is a tensor's name as one file name, as by-name/ has it: `/` is escaped as well.
func Flat(name string) string { return escapePart(name) }
