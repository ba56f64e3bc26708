package cli

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"weightfs/digest"
	"weightfs/format"
	"weightfs/format/set"
	"weightfs/format/tensor"
	"weightfs/store"
)

// A job reads a file or a tensor and tells what is wrong with it.
type job struct {
	bytes int64
	run   func(read func(n int)) *tensor.FormatError
}

// read does what there is to do in the order of the files, on all cores.
func (v *verifying) read(r *report, c *format.Checkpoint, label string) {
	jobs, unused := v.jobs(c)
	for _, j := range jobs {
		r.bytes += j.bytes
	}
	r.shown = v.progress(label, r.bytes)
	defer r.shown.end()
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, j := range jobs {
		group.Go(func() error {
			if f := j.run(func(n int) { r.shown.add(int64(n)) }); f != nil {
				v.fault(r, f)
			}
			return nil
		})
	}
	group.Wait()
	for _, name := range unused {
		v.fault(r, &tensor.FormatError{File: v.sumsPath, Off: -1, Msg: fmt.Sprintf("%q is not in the checkpoint", name), Err: set.ErrNone})
	}
	r.sort()
}

// jobs are those of each file and of the tensors in it. unused are the names in --sums that there is
// nothing to compare with.
func (v *verifying) jobs(c *format.Checkpoint) (list []job, unused []string) {
	left := maps.Clone(v.sums)
	number := make(map[*format.Shard]int, len(c.Shards))
	byShard := make([][]job, len(c.Shards))
	for i, s := range c.Shards {
		number[s] = i
		want, named := store.NamedSum(s.Path)
		if sum, ok := left[s.Name]; ok {
			delete(left, s.Name)
			want, named = sum, true
		} else if !v.hash {
			continue
		}
		byShard[i] = append(byShard[i], job{s.Size(), func(read func(int)) *tensor.FormatError {
			return checkFile(c, i, want, named, read)
		}})
	}
	for i := range c.Len() {
		t := c.Tensor(i)
		j := tensorJob{c: c, i: i, t: t}
		name := "raw/" + t.Path + ".raw"
		if j.want, j.named = left[name]; j.named {
			delete(left, name)
			j.parts |= digest.Hash
		}
		if v.nan && digest.Counts(t.DType) {
			j.parts |= digest.Stats
		}
		if v.hash && t.Layout != nil && t.Layout.Pack != tensor.Stored {
			j.parts |= digest.Hash // to unpack it
		}
		n := t.Bytes
		if j.parts == 0 {
			n = 0
		}
		byShard[number[t.Shard]] = append(byShard[number[t.Shard]], job{n, j.run})
	}
	return slices.Concat(byShard...), slices.Sorted(maps.Keys(left))
}

// checkFile reads a file whole and compares its hash.
func checkFile(c *format.Checkpoint, i int, want [32]byte, named bool, read func(n int)) *tensor.FormatError {
	s := c.Shards[i]
	fault := &tensor.FormatError{File: s.Path, Off: -1, Err: tensor.ErrMalformed}
	switch r, err := c.RedigestFile(i, read); {
	case err != nil:
		fault.Msg = strings.TrimPrefix(err.Error(), s.Path+": ")
	case named && r.SHA256 != want:
		fault.Msg = fmt.Sprintf("the SHA-256 is %x, not %x", r.SHA256, want)
	default:
		return nil
	}
	return fault
}

// A tensorJob checks one tensor.
type tensorJob struct {
	c     *format.Checkpoint
	i     int
	t     format.Tensor
	parts digest.Parts
	want  [32]byte
	named bool
}

func (j *tensorJob) run(read func(n int)) *tensor.FormatError {
	fault := &tensor.FormatError{File: j.t.Shard.Path, Off: j.t.Extent.Off, Tensor: j.t.Name, Err: tensor.ErrMalformed}
	if j.parts == 0 {
		if err := probe(&j.t); err != nil {
			fault.Msg = err.Error()
			return fault
		}
		return nil
	}
	switch r, err := j.c.Redigest(j.i, j.parts, read); {
	case err != nil:
		fault.Msg = inner(err)
	case j.named && r.SHA256 != j.want:
		fault.Msg = fmt.Sprintf("the SHA-256 is %x, not %x", r.SHA256, j.want)
	case r.NaN+r.PosInf+r.NegInf > 0:
		fault.Msg = fmt.Sprintf("%d NaN, %d Inf and %d -Inf among %d values", r.NaN, r.PosInf, r.NegInf, r.NaN+r.PosInf+r.NegInf+r.Finite)
	default:
		return nil
	}
	return fault
}

// inner is the reason of an error without the names that were added to it.
func inner(err error) string {
	if reason := errors.Unwrap(err); reason != nil {
		return reason.Error()
	}
	return err.Error()
}

// probe reads the ends of a tensor's range.
func probe(t *format.Tensor) error {
	if t.Extent.Len == 0 {
		return nil
	}
	var b [1]byte
	for _, off := range []int64{t.Extent.Off, t.Extent.Off + t.Extent.Len - 1} {
		if _, err := t.Shard.ReadAt(b[:], off); err != nil {
			return err
		}
	}
	return nil
}
