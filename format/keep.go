package format

import (
	"bytes"
	"cmp"
	"encoding/json"
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
	"weightfs/format/tensor"
)

// keepAfter: what opens faster than this is not worth a file. (Tests change it.)
var keepAfter = 50 * time.Millisecond

// keepSettled: a file changed less than this before it was read may change once more and look the same,
// since its times are as coarse as the kernel's tick.
const keepSettled = 20 * time.Millisecond

// A kept is the head of an index file: the checkpoint but for its tensors.
type kept struct {
	Name, Format, Stem, Dir string
	Files                   []keptFile
	Side                    []keptFile
	Own                     []ownFile
	Warnings                []string
	Meta                    json.RawMessage
	Witnesses               []witness
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
	if !ok || c.FromIndex || c.Took < keepAfter {
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
	k := kept{Name: c.Name, Format: c.Format, Stem: c.stem, Warnings: c.Warnings, Meta: tensor.AppendJSON(nil, c.Meta())}
	var p absolute
	k.Dir = p.of(c.dir)
	for i, s := range c.Shards {
		k.Files = append(k.Files, keptFile{s.Name, p.of(s.Path), s.Format, c.dataStart[i]})
	}
	for i := range c.side {
		k.Side = append(k.Side, keptFile{Name: c.side[i].name, Path: p.of(c.side[i].path)})
	}
	for _, f := range c.own {
		f.Path = p.of(f.Path)
		k.Own = append(k.Own, f)
	}
	source := p.of(c.Source)
	if p.err != nil {
		return nil, p.err
	}
	var err error
	if k.Witnesses, err = c.witnesses(source, &k); err != nil {
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

// witnesses are the states of all that was opened, and of the links on the way there. What was parsed must
// be what is there now, or the index would pass for one of other files.
func (c *Checkpoint) witnesses(source string, k *kept) ([]witness, error) {
	paths := []string{source, k.Dir}
	for _, f := range k.Own {
		paths = append(paths, f.Path)
	}
	for i, s := range c.Shards {
		paths = append(paths, k.Files[i].Path)
		open, err := s.witness(k.Files[i].Path)
		if now, nerr := witnessOf(open.Path); err != nil || nerr != nil || now != open {
			return nil, fmt.Errorf("%s is not the file that was parsed", open.Path)
		}
	}
	list, err := witnessesOf(paths)
	for _, w := range list {
		if w.changed().After(c.started.Add(-keepSettled)) {
			return nil, fmt.Errorf("%s may have changed while it was read", w.Path)
		}
	}
	return list, err
}

// recall opens a checkpoint from the index of an earlier time. Anything amiss is a reason to parse.
func recall(source string, opt Options) (*Checkpoint, error) {
	path, ok := opt.keepPath(source)
	if !ok {
		return nil, os.ErrNotExist
	}
	f, st, err := disk.Open(path)
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
	for _, w := range k.Witnesses {
		if now, err := w.again(); err != nil || now != w {
			return nil, fmt.Errorf("%s has changed since", w.Path)
		}
	}
	c, err := k.checkpoint(source, x, opt)
	if err == nil {
		cachedir.Used(path)
	}
	return c, err
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
		Source: source, Name: k.Name, Format: k.Format, Warnings: k.Warnings, FromIndex: true,
		opt: opt, stem: k.Stem, dir: shown(k.Dir), own: k.Own, index: x,
		unpacker: elements.NewUnpacker(opt.unpackDir(), opt.unpackLimit()),
	}
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
	for _, f := range k.Side {
		c.side = append(c.side, sideFile{name: f.Name, path: shown(f.Path)})
	}
	for i := range c.own {
		c.own[i].Path = shown(c.own[i].Path)
	}
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
