package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"weightfs/digest"
	"weightfs/format"
	"weightfs/format/numpy"
	"weightfs/format/set"
	"weightfs/format/tensor"
	"weightfs/store"
)

// A job reads a file or a tensor and tells what is wrong with it.
type job struct {
	bytes int64
	whole bool // it reads all of the file
	run   func(read func(n int)) *tensor.FormatError
}

// read does what there is to do in the order of the files, on all cores.
func (v *verifying) read(r *report, c *format.Checkpoint, dir, label string) {
	p := v.plan(r, c)
	p.beside(dir)
	jobs := slices.Concat(p.jobs...)
	total := int64(0)
	for _, j := range jobs {
		total += j.bytes
	}
	r.bytes = p.bytes()
	r.shown = v.progress(label, total)
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
	for _, name := range slices.Sorted(maps.Keys(p.left)) {
		v.fault(r, &tensor.FormatError{File: v.sumsPath, Off: -1, Msg: fmt.Sprintf("%q is not in the checkpoint", name), Err: set.ErrNone})
	}
	r.sort()
}

// A plan is the jobs for one checkpoint, by shard: what is read twice is still in memory then.
type plan struct {
	*verifying
	found *report
	c     *format.Checkpoint
	jobs  [][]job
	real  []string // paths of the shards without links
	left  sumsFile // of --sums, what there is nothing yet to compare with
}

func (v *verifying) plan(r *report, c *format.Checkpoint) *plan {
	p := &plan{verifying: v, found: r, c: c, jobs: make([][]job, len(c.Shards)), left: maps.Clone(v.sums)}
	number := make(map[*format.Shard]int, len(c.Shards))
	for i, s := range c.Shards {
		number[s] = i
		real, err := filepath.EvalSymlinks(s.Path)
		if err != nil {
			real = s.Path
		}
		p.real = append(p.real, real)
		p.file(i)
	}
	for i := range c.Len() {
		t := c.Tensor(i)
		p.tensor(i, t, number[t.Shard])
	}
	return p
}

// bytes is how much is looked at. What the file was read for and a tensor is read for once more, then out
// of memory, counts once.
func (p *plan) bytes() (sum int64) {
	for _, jobs := range p.jobs {
		whole := slices.ContainsFunc(jobs, func(j job) bool { return j.whole })
		for _, j := range jobs {
			if j.whole || !whole {
				sum += j.bytes
			}
		}
	}
	return sum
}

// file plans to read a file whole, if there is a reason to.
func (p *plan) file(i int) {
	s := p.c.Shards[i]
	want, named := p.left[s.Name]
	delete(p.left, s.Name)
	if !named {
		want, named = store.NamedSum(s.Path)
		if !p.hash || p.again(p.real[i]) {
			return
		}
	}
	p.jobs[i] = append(p.jobs[i], job{s.Size(), true, func(read func(int)) *tensor.FormatError {
		return p.checkFile(i, want, named, read)
	}})
	if p.hash && s.Format == "npz" {
		p.members(i, s)
	}
}

// beside plans to read files of --sums that lie in the checkpoint's directory and hold no weights of it.
func (p *plan) beside(dir string) {
	var jobs []job
	for _, name := range slices.Sorted(maps.Keys(p.left)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		st, err := os.Stat(path)
		if !filepath.IsLocal(name) || err != nil || !st.Mode().IsRegular() {
			continue
		}
		want := p.left[name]
		delete(p.left, name)
		jobs = append(jobs, job{st.Size(), true, func(read func(int)) *tensor.FormatError {
			return checkBeside(path, want, read)
		}})
	}
	p.jobs = append(p.jobs, jobs)
}

func checkBeside(path string, want [sha256.Size]byte, read func(n int)) *tensor.FormatError {
	fault := &tensor.FormatError{File: path, Off: -1, Err: tensor.ErrMalformed}
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		h := sha256.New()
		whole := io.NewSectionReader(format.Watched{ReaderAt: f, Read: read}, 0, math.MaxInt64)
		if _, err = io.Copy(h, whole); err == nil {
			if got := [sha256.Size]byte(h.Sum(nil)); got != want {
				fault.Msg = fmt.Sprintf("the SHA-256 is %x, not %x", got, want)
				return fault
			}
			return nil
		}
	}
	fault.Msg = cause(err).Error()
	return fault
}

// members plans to compare the checksums in an archive. What is wrong with its directory the parser says.
func (p *plan) members(i int, s *format.Shard) {
	list, _ := numpy.Unchecked(s, s.Size())
	for _, f := range list {
		p.jobs[i] = append(p.jobs[i], job{int64(f.UncompressedSize64), false, func(read func(int)) *tensor.FormatError {
			fault := numpy.Check(f, read)
			if fault != nil {
				fault.File = s.Path
			}
			return fault
		}})
	}
}

// tensor plans to read a tensor whole, or its ends.
func (p *plan) tensor(i int, t format.Tensor, shard int) {
	j := tensorJob{c: p.c, i: i, t: t}
	name := "raw/" + t.Path + ".raw"
	if j.want, j.named = p.left[name]; j.named {
		delete(p.left, name)
		j.parts |= digest.Hash
	}
	if p.nan && p.c.HasValues(i) {
		j.parts |= digest.Stats
	}
	if p.hash && t.Layout != nil && t.Layout.Pack != tensor.Stored {
		j.parts |= digest.Hash // to unpack it
	}
	size := int64(0)
	if j.parts != 0 {
		size = t.Bytes
		if !j.named && t.Layout == nil && p.again(fmt.Sprintf("%d %d %s %s", t.Extent.Off, t.Bytes, t.DType, p.real[shard])) {
			return
		}
	}
	p.jobs[shard] = append(p.jobs[shard], job{size, false, j.run})
}

// again tells whether a part of a file has been planned before: revisions in a hub's cache share their
// blobs.
func (v *verifying) again(part string) bool {
	if v.seen[part] {
		return true
	}
	if v.seen == nil {
		v.seen = map[string]bool{}
	}
	v.seen[part] = true
	return false
}

// checkFile reads a file whole and compares its hash.
func (p *plan) checkFile(i int, want [32]byte, named bool, read func(n int)) *tensor.FormatError {
	s := p.c.Shards[i]
	fault := &tensor.FormatError{File: s.Path, Off: -1, Err: tensor.ErrMalformed}
	r, err := p.c.RedigestFile(i, read)
	switch {
	case err != nil:
		return because(fault, err)
	case named && r.SHA256 != want:
		fault.Msg = fmt.Sprintf("the SHA-256 is %x, not %x", r.SHA256, want)
		return fault
	case named:
		return nil
	}
	if at, changed := p.c.ChangedSince(i, r); changed {
		p.found.warn(fmt.Sprintf("%s: changed since %s: not compared with what was read before", s.Name, at.Format("2006-01-02 15:04:05")))
	}
	return nil
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
			return because(fault, err)
		}
		return nil
	}
	switch r, err := j.c.Redigest(j.i, j.parts, read); {
	case err != nil:
		because(fault, err)
	case j.named && r.SHA256 != j.want:
		fault.Msg = fmt.Sprintf("the SHA-256 is %x, not %x", r.SHA256, j.want)
	case r.NaN+r.PosInf+r.NegInf > 0:
		fault.Msg = fmt.Sprintf("%d NaN, %d Inf and %d -Inf among %d values", r.NaN, r.PosInf, r.NegInf, r.NaN+r.PosInf+r.NegInf+r.Finite)
	default:
		return nil
	}
	return fault
}

// because makes an error the reason of a fault, without the names that the fault has already, and takes
// over the place of a read that failed.
func because(fault *tensor.FormatError, err error) *tensor.FormatError {
	if read, ok := errors.AsType[*format.ReadError](err); ok {
		fault.Off, err = read.Off, read.Err
	} else if of, ok := errors.AsType[*format.TensorError](err); ok {
		err = of.Err
	} else if reason := errors.Unwrap(err); reason != nil {
		err = reason
	}
	fault.Msg = err.Error()
	return fault
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
