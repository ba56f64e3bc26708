package format

import (
	"fmt"

	"weightfs/format/detect"
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
