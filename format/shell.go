package format

import "strings"

// shellQuote writes a path so that a POSIX shell takes it as one word; a plain one as it is.
func shellQuote(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:+@%,", r)
	}) < 0
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
