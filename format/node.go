package format

import (
	iofs "io/fs"
	"time"

	"weightfs/format/tensor"
)

// The tree is made of nodes that come into being when they are looked up: no entry is stored for
// each of a million files. A Node is a Dir, a File or a Link, and never changes.
type Node interface {
	Stat() Stat
}

// A Stat is what stat(2) shows of a node.
type Stat struct {
	Ino     uint64 // small, and the same from mount to mount within a checkpoint
	Gen     uint64 // differs between a changed checkpoint's old and new nodes of one Ino
	Mode    iofs.FileMode
	Size    int64 // exact, before anything has been read
	Block   int   // bytes that stat(2) recommends to read at a time; 0: as many as one request takes
	Nlink   uint32
	UID     uint32
	GID     uint32
	ModTime time.Time
}

// smallBlock is the Block of what readers buffer a little of: stdio(3) and Python fill their buffers, of this
// size, to read the header of an array that they then map, or a line of what takes long to make.
const smallBlock = 4096

// A Dir finds its children by name and lists them in natural order.
type Dir interface {
	Node
	// Lookup gives the child of that name, or iofs.ErrNotExist. A Dir of many checkpoints may
	// open one here; its fault is then a node as well (ERROR.txt), not an error.
	Lookup(name string) (Node, error)
	// List is the directory as it is now; a reader keeps one listing from its opendir to its end.
	List() Listing
}

// A Listing is a directory's entries by position, `.` and `..` left out.
type Listing interface {
	Len() int
	At(i int) Dirent
}

// A Dirent is what readdir(3) tells of an entry.
type Dirent struct {
	Name string
	Ino  uint64
	Type iofs.FileMode // the type bits only
}

// A Volatile directory or file may be another one at the next lookup: what the kernel keeps of its
// name and, for a directory, of its listing ends after TTL (0: at once). The root of a tree that holds one is
// Volatile too.
type Volatile interface {
	Node
	TTL() time.Duration
}

// A Link is a symbolic link.
type Link interface {
	Node
	Target() string
}

// A File has content.
type File interface {
	Node
	// Open checks that the shards behind the file are still those that were parsed (ErrStale), and
	// gives its bytes. Content may be used by many readers at once; it needs closing only if it is an
	// io.Closer, as that of a file which a link of the tree leads to.
	Open() (Content, error)
}

// A Costly file takes long to make: who reads its first line must not wait for its last. The kernel is
// not to read ahead of what is asked for.
type Costly interface {
	File
	Costly()
}

// A TensorFile is a File that shows one tensor.
type TensorFile interface {
	File
	View() string // `raw`, `npy`, …
	// ShardFormat is the format of the file that holds the tensor.
	ShardFormat() string
	Tensor() Tensor
}

// A Tensor is one tensor of a checkpoint with its place in the tree and on disk.
type Tensor struct {
	tensor.Info
	Path  string // below a view, without extension
	Shard *Shard // the file that holds its bytes
}
