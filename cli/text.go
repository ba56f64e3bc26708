package cli

import (
	"fmt"

	"github.com/dustin/go-humanize"
)

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// sizeText is a size as `ls -h` has it, in units that say so.
func sizeText(n uint64) string { return humanize.IBytes(n) }
