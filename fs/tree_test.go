//go:build linux

package fs

import (
	iofs "io/fs"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"weightfs/format"
	"weightfs/format/tensor"
)

// A small tree in memory.

var inodes atomic.Uint64

var someTime = time.Unix(1_700_000_000, 0)

func someStat(mode iofs.FileMode, size int64) format.Stat {
	return format.Stat{Ino: inodes.Add(1) + 10, Mode: mode, Size: size, ModTime: someTime}
}

type memDir struct {
	mu       sync.Mutex
	stat     format.Stat
	names    []string
	children map[string]format.Node
}

func dir(entries ...any) *memDir {
	d := &memDir{stat: someStat(iofs.ModeDir|0o755, 0), children: map[string]format.Node{}}
	for i := 0; i < len(entries); i += 2 {
		d.set(entries[i].(string), entries[i+1].(format.Node))
	}
	return d
}

func (d *memDir) set(name string, n format.Node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.children[name] == nil {
		d.names = append(d.names, name)
	}
	d.children[name] = n
}

func (d *memDir) Stat() format.Stat { return d.stat }

func (d *memDir) List() format.Listing {
	d.mu.Lock()
	defer d.mu.Unlock()
	var l memListing
	for _, name := range d.names {
		st := d.children[name].Stat()
		l = append(l, format.Dirent{Name: name, Ino: st.Ino, Type: st.Mode.Type()})
	}
	return l
}

type memListing []format.Dirent

func (l memListing) Len() int               { return len(l) }
func (l memListing) At(i int) format.Dirent { return l[i] }

func (d *memDir) Lookup(name string) (format.Node, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, ok := d.children[name]; ok {
		return n, nil
	}
	return nil, iofs.ErrNotExist
}

type memFile struct {
	stat     format.Stat
	segments []format.Segment
	ends     []int64
	openErr  error
}

func file(segments ...format.Segment) *memFile {
	var ends []int64
	var size int64
	for _, s := range segments {
		size += s.Len
		ends = append(ends, size)
	}
	return &memFile{stat: someStat(0o644, size), segments: segments, ends: ends}
}

func text(s string) *memFile { return file(format.Literal([]byte(s))) }

func (f *memFile) Stat() format.Stat             { return f.stat }
func (f *memFile) Open() (format.Content, error) { return f, f.openErr }
func (f *memFile) Size() int64                   { return f.stat.Size }

func (f *memFile) Segment(off int64) (format.Segment, int64) {
	i := sort.Search(len(f.ends), func(i int) bool { return off < f.ends[i] })
	return f.segments[i], f.ends[i] - f.segments[i].Len
}

type memLink struct {
	stat   format.Stat
	target string
}

func link(target string) *memLink {
	return &memLink{stat: someStat(iofs.ModeSymlink|0o777, int64(len(target))), target: target}
}

func (l *memLink) Stat() format.Stat { return l.stat }
func (l *memLink) Target() string    { return l.target }

// tensorFile is a whole shard shown as a tensor, checked at open as the real ones are.
type tensorFile struct {
	*memFile
	tensor format.Tensor
}

func shardFile(s *format.Shard) *tensorFile {
	return &tensorFile{file(format.Range(s, 0, s.Size())), format.Tensor{
		Info:  tensor.Info{Name: "m.weight", DType: tensor.F32, Shape: []uint64{2, 3}, Extent: tensor.Extent{Off: 0, Len: s.Size()}},
		Shard: s,
	}}
}

var _ format.TensorFile = (*tensorFile)(nil)

func (f *tensorFile) View() string          { return "raw" }
func (f *tensorFile) ShardFormat() string   { return "safetensors" }
func (f *tensorFile) Tensor() format.Tensor { return f.tensor }

func (f *tensorFile) Open() (format.Content, error) {
	if err := f.tensor.Shard.Fresh(); err != nil {
		return nil, err
	}
	return f.memFile, nil
}

// fixture is a tree without shards.
func fixture() *memDir {
	layers := dir("0", dir("w.raw", text("zero")), "1", dir("w.raw", text("one")), "2", dir("w.raw", text("two")), "10", dir("w.raw", text("ten")))
	return dir("README.txt", text("hello\n"), "raw", dir("layers", layers, "empty.raw", file()),
		"by-name", dir("layers.0.w", link("../raw/layers/0/w.raw")))
}
