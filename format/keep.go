package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/zeebo/xxh3"

	"weightfs/cachedir"
	"weightfs/disk"
	"weightfs/format/elements"
	"weightfs/format/index"
	"weightfs/format/set"
	"weightfs/format/tensor"
)

// keepAfter: what opens faster than this is not worth a file. (Tests change it.)
var keepAfter = 50 * time.Millisecond

// keepSettled: a file changed less than this before it was read may change once more and look the same,
// since its times are as coarse as the kernel's tick.
const keepSettled = 20 * time.Millisecond

// A kept is the head of an index file: the checkpoint but for its tensors.
type kept struct {
	Found     set.Set
	Faults    []string
	Format    string
	Files     []keptFile
	Parsed    []ownFile // on whose content the tensors depend
	Meta      json.RawMessage
	Witnesses []witness // of what was parsed: in another state it is another checkpoint
	Listed    []witness // of what Found depends on: in another state it is found once more
}

type keptFile struct {
	Name, Path, Format string
	DataStart          int64
}

// keepPath is the index file of a source opened with these options. A link has one of its own: where it
// leads may change while it is opened.
func (o Options) keepPath(source string) (string, bool) {
	path, err := filepath.Abs(source)
	if o.IndexDir == "" || err != nil {
		return "", false
	}
	key := fmt.Sprintf("%s\x00%t\x00%t\x00%s", path, o.Lenient, o.Partial, o.choice())
	return filepath.Join(o.IndexDir, fmt.Sprintf("%016x%s", xxh3.HashString(key), cachedir.IndexExt)), true
}

// Keep writes the index to the cache if opening took long enough for that to help the next time. Its
// failure is no fault of the checkpoint; it may run while the tree is in use.
func (c *Checkpoint) Keep() {
	path, ok := c.opt.keepPath(c.Source)
	if !ok || c.FromIndex && !c.listed || c.Took < keepAfter {
		return
	}
	head, err := c.keptHead()
	if err == nil {
		err = cachedir.Write(path, func(w io.Writer) error { return c.index.Write(w, head) })
	}
	if err != nil {
		slog.Debug("the index is not kept", "file", path, "reason", err)
	}
}

// keptHead has absolute paths: the next to open the source may be in another directory.
func (c *Checkpoint) keptHead() ([]byte, error) {
	k := kept{Found: c.found, Faults: c.faults, Format: c.Format, Meta: tensor.AppendJSON(nil, c.Meta())}
	var p absolute
	k.Found.Dir = p.of(c.found.Dir)
	listed := []string{p.of(c.Source), k.Found.Dir}
	for i, s := range c.Shards {
		k.Files = append(k.Files, keptFile{s.Name, p.of(s.Path), s.Format, c.dataStart[i]})
	}
	for i, f := range c.own {
		f.Path = p.of(f.Path)
		if i < len(c.Shards) || f.Name == c.found.Index || slices.Contains(quantizationFiles, f.Name) {
			k.Parsed = append(k.Parsed, f)
		} else {
			listed = append(listed, f.Path)
		}
		if name := filepath.Join(k.Found.Dir, f.Name); name != f.Path {
			listed = append(listed, name) // a file that holds the path of another
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	var err error
	if k.Witnesses, err = c.parsedWitnesses(&k); err == nil {
		k.Listed, err = c.witnesses(listed)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(k)
}

// absolute makes paths absolute until that fails.
type absolute struct{ err error }

func (a *absolute) of(path string) string {
	abs, err := filepath.Abs(path)
	a.err = cmp.Or(a.err, err)
	return abs
}

// parsedWitnesses are the states of all that was parsed. It must be what is there now, or the index would
// pass for one of other files.
func (c *Checkpoint) parsedWitnesses(k *kept) ([]witness, error) {
	var paths []string
	for _, f := range k.Parsed {
		paths = append(paths, f.Path)
	}
	for i, s := range c.Shards {
		open, err := s.witness(k.Files[i].Path)
		if now, nerr := witnessOf(open.Path); err != nil || nerr != nil || now != open {
			return nil, fmt.Errorf("%s is not the file that was parsed", open.Path)
		}
	}
	return c.witnesses(paths)
}

// witnesses are the states of files, and of the links on the way there, since before opening began.
func (c *Checkpoint) witnesses(paths []string) ([]witness, error) {
	list, err := witnessesOf(paths)
	for _, w := range list {
		if w.changed().After(c.started.Add(-keepSettled)) {
			return nil, fmt.Errorf("%s may have changed while it was read", w.Path)
		}
	}
	return list, err
}

// compare tells whether all is still in the state that it was in.
func compare(list []witness) error {
	for _, w := range list {
		if now, err := w.again(); err != nil || now != w {
			return fmt.Errorf("%s has changed since", w.Path)
		}
	}
	return nil
}

var (
	errNoIndexes = errors.New("indexes are neither used nor kept")
	errNotKept   = errors.New("none is kept")
)

// recall opens a checkpoint from the index of an earlier time. Anything amiss is a reason to parse.
func recall(source string, opt Options) (*Checkpoint, error) {
	path, ok := opt.keepPath(source)
	if !ok {
		return nil, errNoIndexes
	}
	f, st, err := disk.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errNotKept
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if uid, _ := Owner(st); int(uid) != os.Geteuid() && os.Geteuid() >= 0 {
		return nil, fmt.Errorf("%s belongs to another user", path) // who could have written anything into it
	}
	head, x, err := index.Read(f, st.Size())
	if err != nil {
		return nil, err
	}
	var k kept
	if err := json.Unmarshal(head, &k); err != nil {
		return nil, err
	}
	if err := compare(k.Witnesses); err != nil {
		return nil, err
	}
	k.Found.Dir = spelling(source)(k.Found.Dir)
	listed := len(k.Found.Missing) > 0 || compare(k.Listed) != nil
	if listed {
		if err := k.find(source, opt); err != nil {
			return nil, err
		}
	}
	c, err := k.checkpoint(source, x, opt)
	if err == nil {
		c.listed = listed
		cachedir.Used(path)
	}
	return c, err
}

// find lists the checkpoint's files again. The index is of use while those that were parsed are the same;
// others may have come and gone.
func (k *kept) find(source string, opt Options) error {
	s, err := set.Find(source, set.Options{Partial: opt.Partial})
	if err != nil {
		return err
	}
	old := &k.Found
	same := s.Dir == old.Dir && s.Index == old.Index && slices.Equal(s.Files, old.Files) && slices.Equal(s.Missing, old.Missing)
	for _, name := range quantizationFiles {
		same = same && slices.Contains(s.Side, name) == slices.Contains(old.Side, name)
	}
	var p absolute
	for _, f := range k.Parsed {
		same = same && p.of(s.Path(f.Name)) == f.Path
	}
	if !same || p.err != nil {
		return fmt.Errorf("%s holds other files of the checkpoint since", s.Dir)
	}
	s.Map = nil
	k.Found = *s
	return nil
}

// witnessed tells that an open shard is the file of which the index tells.
func (k *kept) witnessed(s *Shard, path string) error {
	w, err := s.witness(path)
	if err == nil && !slices.Contains(k.Witnesses, w) {
		err = fmt.Errorf("%s has changed since", path)
	}
	return err
}

func (k *kept) checkpoint(source string, x *index.Index, opt Options) (*Checkpoint, error) {
	shown := spelling(source)
	c := &Checkpoint{
		Source: source, Name: k.Found.Name, Format: k.Format, FromIndex: true,
		opt: opt, stem: k.Found.Stem, found: k.Found, faults: k.Faults, index: x,
		unpacker: elements.NewUnpacker(opt.unpackDir(), opt.unpackLimit()),
	}
	c.Warnings = slices.Concat(c.found.Warnings, c.faults)
	for _, f := range k.Files {
		s, err := OpenShard(f.Name, shown(f.Path))
		if err == nil {
			c.Shards = append(c.Shards, s)
			err = k.witnessed(s, f.Path)
		}
		if err != nil {
			c.Close()
			return nil, err
		}
		s.Format = f.Format
		c.dataStart = append(c.dataStart, f.DataStart)
	}
	c.others()
	c.meta = func() tensor.Object { return parseObject(k.Meta) }
	c.prepare()
	return c, nil
}

// spelling gives paths as the user wrote the source: relative where that is.
func spelling(source string) func(path string) string {
	base, err := os.Getwd()
	return func(path string) string {
		if rel, rerr := filepath.Rel(base, path); err == nil && rerr == nil && !filepath.IsAbs(source) {
			return rel
		}
		return path
	}
}

// parseObject reads back what tensor.AppendJSON wrote, in its order.
func parseObject(text []byte) tensor.Object {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := parseValue(d)
	if o, ok := v.(tensor.Object); ok && err == nil {
		return o
	}
	return nil
}

func parseValue(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := tensor.Object{}
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			o = append(o, tensor.KV{Key: k.(string), Value: v})
		}
		_, err := d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	return t, nil
}
