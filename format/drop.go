package format

import "weightfs/mmap"

// Drop takes n bytes at off out of the kernel's cache, as far as nobody else uses them there.
func (s *Shard) Drop(off, n int64) {
	if s.Slice(off, n) == nil {
		return
	}
	s.mapped.Advise(off, n, mmap.DontNeed) // the kernel keeps what is mapped
	mmap.Uncache(s.file, off, n)
}
