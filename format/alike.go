package format

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"weightfs/format/tensor"
)

// checkAlike makes it a tolerable fault of a file that it is of another format than its set: it has a name
// that is another's. Where they differ, one that is what its extension says is right.
func checkAlike(names []string, headers []*tensor.Header) {
	like := 0
	for i, h := range slices.Backward(headers) {
		if strings.EqualFold(filepath.Ext(names[i]), "."+h.Format) {
			like = i
		}
	}
	for _, h := range headers {
		if h.Format != headers[like].Format {
			h.Tolerable = append(h.Tolerable, &tensor.FormatError{
				Off: -1, Err: tensor.ErrMalformed,
				Msg: fmt.Sprintf("this is %s, but %s, of the same set, is %s", h.Format, names[like], headers[like].Format),
			})
		}
	}
}
