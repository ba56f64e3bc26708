package store

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"regexp"
)

// sumName is a file name that is the SHA-256 of the content: a blob of the hub's cache or of Git LFS
// (64 digits), of Ollama (sha256-), or a key of git-annex.
var sumName = regexp.MustCompile(`^(?:sha256-|SHA256E?-s\d+--)?([0-9a-f]{64})(?:\.[\w.]*)?$`)

// NamedSum is the SHA-256 that a file must have, if its name tells it, or that of the file which a
// link leads to.
func NamedSum(path string) (sum [sha256.Size]byte, ok bool) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	m := sumName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(m[1]))
	return sum, err == nil
}
