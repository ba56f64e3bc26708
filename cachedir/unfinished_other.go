//go:build !unix

package cachedir

import (
	"os"
	"time"
)

// unfinishedFor is how long nothing is written to a file whose writer has ended.
const unfinishedFor = time.Hour

func lock(*os.File) (unlock func(), ok bool) { return func() {}, true }

// removeAbandoned removes a file that nobody has written to for long.
func removeAbandoned(path string) {
	if st, err := os.Stat(path); err == nil && time.Since(st.ModTime()) > unfinishedFor {
		os.Remove(path)
	}
}
