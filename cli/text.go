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

// sizeText is a size in three digits, as shops and hubs give it.
func sizeText(n uint64) string {
	if n < 1000 {
		return humanize.Bytes(n)
	}
	return humanize.BytesN(n, 3)
}
