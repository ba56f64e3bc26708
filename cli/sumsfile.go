package cli

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

// sumsFile is what `sha256sum` wrote, or SHA256SUMS of a tree: hashes by name.
type sumsFile map[string][sha256.Size]byte

func readSumsFile(path string) (sumsFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--sums %s: %w", path, cause(err))
	}
	defer f.Close()
	sums := sumsFile{}
	scanner := bufio.NewScanner(f)
	for n := 1; scanner.Scan(); n++ {
		name, sum, ok := parseSumLine(scanner.Text())
		if !ok {
			return nil, failf(exitTrouble, "%s: line %d is not 64 hexadecimal digits, two spaces and a name", path, n)
		}
		sums[name] = sum
	}
	if err := scanner.Err(); err != nil {
		return nil, failf(exitTrouble, "%s: %v", path, err)
	}
	return sums, nil
}

// parseSumLine reads a line of sha256sum, which marks a line with an escaped name by a backslash, and
// a file read as binary by a star.
func parseSumLine(line string) (name string, sum [sha256.Size]byte, ok bool) {
	line, escaped := strings.CutPrefix(line, `\`)
	const digits = 2 * sha256.Size
	if len(line) < digits+3 || line[digits] != ' ' || line[digits+1] != ' ' && line[digits+1] != '*' {
		return "", sum, false
	}
	_, err := hex.Decode(sum[:], []byte(line[:digits]))
	name = line[digits+2:]
	if escaped {
		name = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace(name)
	}
	return strings.TrimPrefix(name, "./"), sum, err == nil
}
