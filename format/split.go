package format

import (
	"fmt"
	"strconv"
	"strings"

	"weightfs/format/gguf"
	"weightfs/format/set"
	"weightfs/format/tensor"
)

// checkSplits compares the parts of a split GGUF set: each says how many there are and which it is.
func (o *opening) checkSplits() error {
	total, count := 0, 0
	for i, h := range o.headers {
		no, parts, all, ok := gguf.Split(h)
		if !ok || len(o.set.Files) == 1 && parts <= 1 {
			continue
		}
		count++
		if parts != len(o.set.Files)+len(o.set.Missing) {
			return o.splitFault(i, "split.count is %d, but %s", parts, o.partsThere(parts))
		}
		if len(o.set.Missing) == 0 && no != i {
			return o.splitFault(i, "split.no is %d (counted from 0), but its name says %d", no, i)
		}
		total = max(total, all)
	}
	have := 0
	for _, h := range o.headers {
		have += len(h.Tensors)
	}
	if count > 0 && total > 0 && total != have && len(o.set.Missing) == 0 {
		o.warn("split.tensors.count is %d, but the parts hold %d tensors", total, have)
	}
	return nil
}

// partsThere names the files of a split set that are there, and the numbers of the parts that are not.
func (o *opening) partsThere(parts int) string {
	const most = 10
	there := map[int]bool{}
	for _, h := range o.headers {
		if no, _, _, ok := gguf.Split(h); ok {
			there[no] = true
		}
	}
	var missing []string
	for no := 0; no < parts && len(missing) < most; no++ {
		if !there[no] {
			missing = append(missing, strconv.Itoa(no+1))
		}
	}
	text := fmt.Sprintf("%s there: %s", isOrAre(len(o.set.Files), "file"), set.Enumerate(o.set.Files, most))
	if len(missing) > 0 {
		text += "; missing: part " + strings.Join(missing, ", ")
	}
	if more := parts - len(there) - len(missing); len(missing) == most && more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func isOrAre(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return fmt.Sprintf("%d %ss are", n, noun)
}

func (o *opening) splitFault(i int, msg string, a ...any) error {
	return &tensor.FormatError{Format: "gguf", File: o.c.Shards[i].Path, Off: -1, Msg: fmt.Sprintf(msg, a...), Err: tensor.ErrMalformed}
}
