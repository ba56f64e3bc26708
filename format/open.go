package format

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"weightfs/format/elements"
	"weightfs/format/index"
	"weightfs/format/names"
	"weightfs/format/set"
	"weightfs/format/tensor"
)

// Options say how a checkpoint is opened. The zero value is what `ls` uses.
type Options struct {
	Lenient bool     // tolerable faults become warnings
	Partial bool     // a set may lack shards, with a warning for each
	AsF32   bool     // assembled files hold float32 where safetensors lacks the type
	Views   []string // which views there are; nil for all

	Include []names.Pattern // tensors to show, by the names that they have in the files; none for all
	Exclude []names.Pattern // tensors to leave out
	Map     *names.Rules    // other names for them

	InoBase uint64 // added to every inode number: one checkpoint of many
	Gen     uint64 // of every node: the n-th state of a checkpoint of many

	IndexDir    string // where indexes are kept; empty for nowhere
	DigestDir   string // where hashes and statistics are kept; empty for nowhere
	UnpackDir   string // where deflated tensors are unpacked; empty for os.TempDir
	UnpackLimit int64  // bytes of them at most; 0 for 16 GiB
}

// unpackLimit stands for an Options.UnpackLimit of 0.
const unpackLimit = 16 << 30

// openJobs is how many shards are opened and parsed side by side: parsing waits for the disk or a
// network as often as for a core.
const openJobs = 8

// Open finds the shards of the checkpoint at a path, parses them side by side, and makes the tree.
// Faults of a container are *tensor.FormatError; missing shards *set.IncompleteError.
func Open(path string, opt Options) (*Checkpoint, error) {
	start := time.Now()
	c, err := recall(path, opt)
	if err != nil {
		missed := err.Error()
		if c, err = open(path, opt); err != nil {
			return nil, err
		}
		c.Missed = missed
	}
	c.started, c.Took = start, time.Since(start)
	return c, nil
}

func open(path string, opt Options) (*Checkpoint, error) {
	s, err := set.Find(path, set.Options{Partial: opt.Partial})
	if err != nil {
		return nil, err
	}
	return OpenSet(path, s, opt)
}

// OpenSet opens the files of a set that was found at source.
func OpenSet(source string, s *set.Set, opt Options) (*Checkpoint, error) {
	c := &Checkpoint{Source: source, Name: s.Name, opt: opt, stem: s.Stem, found: *s}
	c.found.Map = nil
	o := opening{c: c, set: s}
	if err := o.run(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// opening is the work of Open.
type opening struct {
	c       *Checkpoint
	set     *set.Set
	headers []*tensor.Header
	sources []index.Source
	meta    tensor.Object // the shards' metadata merged
}

// run opens and parses the files, makes one index of what is in them, and then the tree.
func (o *opening) run() error {
	if err := o.parse(); err != nil {
		return err
	}
	c := o.c
	checkAlike(o.set.Files, o.headers)
	if err := o.checkSplits(); err != nil {
		return err
	}
	c.dataStart = make([]int64, len(o.headers))
	for i, h := range o.headers {
		if err := o.take(i, h); err != nil {
			return err
		}
	}
	x, err := index.Build(o.sources)
	if err != nil {
		return o.duplicate(err)
	}
	c.index = x
	c.dataStart = append(c.dataStart, make([]int64, len(c.Shards)-len(o.headers))...) // external data has none
	if !c.opt.chooses() {
		o.checkWeights()
	}
	c.faults = c.Warnings
	c.Warnings = slices.Concat(c.found.Warnings, c.faults)
	c.others()
	c.unpacker = elements.NewUnpacker(c.opt.unpackDir(), c.opt.unpackLimit())
	c.meta = func() tensor.Object { return o.meta }
	c.prepare()
	c.markViews()
	return nil
}

// parse opens and parses the files of the set, several at once. Of several faults it reports that of
// the first file.
func (o *opening) parse() error {
	n := len(o.set.Files)
	shards, errs := make([]*Shard, n), make([]error, n)
	o.headers = make([]*tensor.Header, n)
	var group errgroup.Group
	group.SetLimit(openJobs)
	for i, name := range o.set.Files {
		group.Go(func() error {
			shards[i], o.headers[i], errs[i] = openShard(name, o.set.Path(name))
			return nil
		})
	}
	group.Wait()
	for _, s := range shards {
		if s != nil {
			o.c.Shards = append(o.c.Shards, s)
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func openShard(name, path string) (*Shard, *tensor.Header, error) {
	s, err := OpenShard(name, path)
	if err != nil {
		return nil, nil, err
	}
	h, err := parse(s)
	if err != nil {
		return s, nil, inFile(err, path)
	}
	s.Format = h.Format
	if h.Format == "npy" {
		stem := filepath.Base(name)
		h.Tensors[0].Name = strings.TrimSuffix(stem, filepath.Ext(stem))
	}
	return s, h, nil
}

// take adds one parsed file to the checkpoint.
func (o *opening) take(i int, h *tensor.Header) error {
	c, s := o.c, o.c.Shards[i]
	for _, fault := range h.Tolerable {
		fault.File = s.Path
		if !c.opt.Lenient {
			fault.Hint = strings.TrimPrefix(fault.Hint+"; --lenient reads it all the same", "; ")
			return fault
		}
		c.Warnings = append(c.Warnings, fault.Error())
	}
	for _, w := range h.Warnings {
		c.Warnings = append(c.Warnings, s.Name+": "+w)
	}
	switch c.Format {
	case "", h.Format:
		c.Format = h.Format
	default:
		c.Format = "mixed"
	}
	o.mergeMeta(s, h.Meta)
	files, err := o.external(h)
	if err != nil {
		return inFile(err, s.Path)
	}
	if o.set.Rename != nil {
		for i := range h.Tensors {
			h.Tensors[i].Name = o.set.Rename(s.Name, h.Tensors[i].Name)
		}
	}
	c.opt.choose(h, o.meta)
	o.sources = append(o.sources, index.Source{Header: h, Shard: uint32(i), Files: files})
	c.dataStart[i] = h.DataStart
	return nil
}

// mergeMeta takes over the metadata of a shard. Of one key the first value stands.
func (o *opening) mergeMeta(s *Shard, meta tensor.Object) {
	for _, kv := range meta {
		if strings.HasPrefix(kv.Key, "split.") && len(o.set.Files) > 1 {
			continue // GGUF's numbering of the parts, which are one here
		}
		old := o.meta.Get(kv.Key)
		if old == nil {
			o.meta = append(o.meta, kv)
			continue
		}
		if string(tensor.AppendJSON(nil, old)) != string(tensor.AppendJSON(nil, kv.Value)) {
			o.c.Warnings = append(o.c.Warnings, fmt.Sprintf("%s: metadata %q differs from that of an earlier file, which stands", s.Name, kv.Key))
		}
	}
}

// duplicate says which files hold a tensor twice.
func (o *opening) duplicate(err error) error {
	var dup *index.DuplicateError
	if !errors.As(err, &dup) {
		return err
	}
	a, b := o.c.Shards[dup.Files[0]], o.c.Shards[dup.Files[1]]
	where := fmt.Sprintf("it is in %s and in %s", a.Name, b.Name)
	if a == b {
		where = "it is there twice"
	}
	hint := ""
	switch {
	case o.c.opt.Map != nil:
		hint = "by the names that the rules give"
	case a != b && set.Slice(a.Name) && set.Slice(b.Name):
		hint = "such files often hold a piece of every tensor each; open one of them by itself"
	}
	return &tensor.FormatError{Format: b.Format, File: b.Path, Off: -1, Tensor: dup.Name, Msg: "duplicate tensor: " + where, Hint: hint, Err: tensor.ErrMalformed}
}

// checkWeights compares the index file's weight_map with what the shards hold. A wrong map is
// common and harmless (huggingface_hub#4728): what is there is shown, and the rest is named.
func (o *opening) checkWeights() {
	m := o.set.Map
	if m == nil {
		return
	}
	open := make(map[string]bool, len(o.c.Shards)) // a missing shard has its own warning
	for _, s := range o.c.Shards {
		open[s.Name] = true
	}
	found := make([]bool, len(m.Weights))
	var unnamed []string
	for t, r := range o.c.index.Records {
		name := o.c.index.Name(uint32(t))
		i, ok := m.Find(name)
		if !ok {
			unnamed = append(unnamed, name)
			continue
		}
		found[i] = true
		w, file := m.Weights[i], o.c.Shards[r.File].Name
		if w.File != file && open[w.File] {
			o.warn("%s says that tensor %q is in %s, but it is in %s", o.set.Index, w.Tensor, w.File, file)
		}
	}
	for i, w := range m.Weights {
		if !found[i] && open[w.File] {
			o.warn("%s names tensor %q in %s, which does not have it", o.set.Index, w.Tensor, w.File)
		}
	}
	if len(unnamed) > 0 {
		o.warn("%s does not name all that its files hold, which is shown all the same: %s", o.set.Index, set.Enumerate(unnamed, maxUnnamed))
	}
}

const maxUnnamed = 100 // tensors that the warning lists

func (o *opening) warn(format string, a ...any) {
	o.c.Warnings = append(o.c.Warnings, fmt.Sprintf(format, a...))
}

// others lists the checkpoint's files that hold no weights.
func (c *Checkpoint) others() {
	for _, s := range c.Shards {
		c.own = append(c.own, ownFile{s.Name, s.Path})
	}
	if name := c.found.Index; name != "" {
		c.own = append(c.own, ownFile{name, c.found.Path(name)})
	}
	for _, name := range c.found.Side {
		path := c.found.Path(name)
		c.own = append(c.own, ownFile{name, path})
		c.side = append(c.side, sideFile{name: name, path: path})
	}
}

func (o Options) unpackDir() string { return cmp.Or(o.UnpackDir, os.TempDir()) }

func (o Options) unpackLimit() int64 { return cmp.Or(o.UnpackLimit, unpackLimit) }
