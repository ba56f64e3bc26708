package format

import (
	"fmt"
	"strconv"
	"strings"

	"weightfs/format/detect"
	"weightfs/format/gguf"
	"weightfs/format/set"
	"weightfs/format/tensor"
)

// external opens the other files that a file's tensors lie in (ONNX external data), beside it, and
// checks their ranges. It gives the shard numbers of those files by the names that the tensors use.
func (o *opening) external(h *tensor.Header) (map[string]uint32, error) {
	var files map[string]uint32
	for i := range h.Tensors {
		t := &h.Tensors[i]
		if t.File == "" {
			continue
		}
		n, ok := files[t.File]
		if !ok {
			s, err := o.openBeside(t.File)
			if err != nil {
				return nil, &tensor.FormatError{Format: h.Format, Off: -1, Tensor: t.Name, Msg: err.Error(), Err: err}
			}
			if files == nil {
				files = map[string]uint32{}
			}
			n = uint32(len(o.c.Shards))
			files[t.File] = n
			s.Format = h.Format
			o.c.Shards = append(o.c.Shards, s)
		}
		if err := checkExternal(t, o.c.Shards[n]); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// checkExternal compares a tensor's range with the file that holds it.
func checkExternal(t *tensor.Info, s *Shard) error {
	e := &t.Extent
	if e.Len < 0 && e.Off >= 0 && e.Off <= s.Size() {
		e.Len = s.Size() - e.Off
	}
	fail := func(msg string, a ...any) error {
		return &tensor.FormatError{Format: s.Format, File: s.Path, Off: e.Off, Tensor: t.Name, Msg: fmt.Sprintf(msg, a...), Err: tensor.ErrTruncated}
	}
	if e.Off < 0 || e.Len < 0 || e.Off > s.Size() || e.Len > s.Size()-e.Off {
		return fail("external data of %d bytes ends past the file of %d", e.Len, s.Size())
	}
	if t.Layout == nil && e.Len != t.Bytes {
		if e.Len < t.Bytes {
			return fail("external data has a length of %d bytes, its shape needs %d", e.Len, t.Bytes)
		}
		e.Len = t.Bytes
	}
	return nil
}

// openBeside opens a file that a checkpoint names, as named and beside the file that names it. The
// name may not lead out of the directory; what a link of that name leads to is the owner's choice (in a
// hub cache every file is one).
func (o *opening) openBeside(name string) (*Shard, error) {
	clean, err := set.Local(name)
	if err != nil {
		return nil, fmt.Errorf("%w: external data: %w", tensor.ErrUnsafe, err)
	}
	s, err := OpenShard(clean, o.set.Path(clean))
	if err != nil {
		return nil, fmt.Errorf("external data: %w", err)
	}
	if err := detect.Pointer(s.file, s.Size()); err != nil {
		s.Close()
		return nil, fmt.Errorf("external data: %w", inFile(err, s.Path))
	}
	return s, nil
}

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
