package format

import (
	"bytes"
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

// A witness is the state of a file or directory on which the result of opening depends.
type witness struct {
	Path                            string
	Dev, Ino                        uint64
	Size, ModTime, ChangeTime, Mode int64
}

func (w witness) changed() time.Time { return time.Unix(0, max(w.ModTime, w.ChangeTime)) }

// keepPath is the index file of a source opened with these options.
func (o Options) keepPath(source string) (string, bool) {
	real, err := filepath.Abs(source)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if o.IndexDir == "" || err != nil {
		return "", false
	}
	key := fmt.Sprintf("%s\x00%t\x00%t\x00%s", real, o.Lenient, o.Partial, o.choice())
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

func (c *Checkpoint) keptHead() ([]byte, error) {
	k := kept{Name: c.Name, Format: c.Format, Stem: c.stem, Dir: c.dir, Own: c.own, Warnings: c.Warnings, Meta: tensor.AppendJSON(nil, c.Meta())}
	for i, s := range c.Shards {
		k.Files = append(k.Files, keptFile{s.Name, s.Path, s.Format, c.dataStart[i]})
	}
	for i := range c.side {
		k.Side = append(k.Side, keptFile{Name: c.side[i].name, Path: c.side[i].path})
	}
	paths := []string{c.Source, c.dir}
	for _, f := range c.own {
		paths = append(paths, f.Path)
	}
	for _, s := range c.Shards {
		paths = append(paths, s.Path)
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		w, err := witnessOf(path)
		if err != nil {
			return nil, err
		}
		if w.changed().After(c.started.Add(-keepSettled)) {
			return nil, fmt.Errorf("%s may have changed while it was read", path)
		}
		k.Witnesses = append(k.Witnesses, w)
	}
	return json.Marshal(k)
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
	head, x, err := index.Read(f, st.Size())
	if err != nil {
		return nil, err
	}
	var k kept
	if err := json.Unmarshal(head, &k); err != nil {
		return nil, err
	}
	for _, w := range k.Witnesses {
		if now, err := witnessOf(w.Path); err != nil || now != w {
			return nil, fmt.Errorf("%s has changed since", w.Path)
		}
	}
	cachedir.Used(path)
	return k.checkpoint(source, x, opt)
}

func (k *kept) checkpoint(source string, x *index.Index, opt Options) (*Checkpoint, error) {
	c := &Checkpoint{
		Source: source, Name: k.Name, Format: k.Format, Warnings: k.Warnings, FromIndex: true,
		opt: opt, stem: k.Stem, dir: k.Dir, own: k.Own, index: x,
		unpacker: elements.NewUnpacker(opt.unpackDir(), opt.unpackLimit()),
	}
	for _, f := range k.Files {
		s, err := OpenShard(f.Name, f.Path)
		if err != nil {
			c.Close()
			return nil, err
		}
		s.Format = f.Format
		c.Shards = append(c.Shards, s)
		c.dataStart = append(c.dataStart, f.DataStart)
	}
	for _, f := range k.Side {
		c.side = append(c.side, sideFile{name: f.Name, path: f.Path})
	}
	c.meta = func() tensor.Object { return parseObject(k.Meta) }
	c.prepare()
	return c, nil
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
