package format

import "sync"

// A sideFile is another file of the checkpoint's directory (config.json, a tokenizer), shown in
// assembled/ as a file, so that a bind mount into a container finds it.
type sideFile struct {
	name string
	path string
	once sync.Once
	file *Shard
	err  error
}

// open opens the file at its first use.
func (f *sideFile) open() (*Shard, error) {
	f.once.Do(func() { f.file, f.err = OpenShard(f.name, f.path) })
	return f.file, f.err
}

func (f *sideFile) close() error {
	f.once.Do(func() {})
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// node is the file's node of assembled/.
func (f *sideFile) node(c *Checkpoint, ino uint64) (Node, error) {
	s, err := f.open()
	if err != nil {
		return nil, err
	}
	return &fileNode{c.fileStat(shardStat(s), ino, s.Size()), func() (Content, error) {
		if err := s.Fresh(); err != nil {
			return nil, err
		}
		return newSegments(Range(s, 0, s.Size())), nil
	}}, nil
}

// assembledDir is assembled/: the whole checkpoint as one safetensors file beside its side files, so
// that loaders which know only a directory of one file take it.
func (c *Checkpoint) assembledDir() *fixedDir {
	d := &fixedDir{stat: c.dirStat(c.ino(inoAssembled))}
	weights := c.stem + partExt
	for i := range c.side {
		f := &c.side[i]
		if f.name == weights {
			continue
		}
		fileIno := c.ino(inoAssembled + 1 + uint64(i))
		d.add(fixedEntry{f.name, 0, fileIno, func() (Node, error) { return f.node(c, fileIno) }})
	}
	fileIno := c.nodeIno(slotParts, 0)
	d.add(fixedEntry{weights, 0, fileIno, func() (Node, error) { return c.assemblyFile(fileIno, 0), nil }})
	return d
}
