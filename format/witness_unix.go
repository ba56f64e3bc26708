//go:build unix

package format

import "golang.org/x/sys/unix"

func witnessOf(path string) (witness, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return witnessFrom(path, &st), err
}

func witnessOfLink(path string) (witness, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	w := witnessFrom(path, &st)
	w.Link = true
	return w, err
}

// witness is the open file's, whatever lies at its path by now.
func (s *Shard) witness(path string) (witness, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(s.file.Fd()), &st)
	return witnessFrom(path, &st), err
}

func witnessFrom(path string, st *unix.Stat_t) witness {
	return witness{
		Path: path, Dev: uint64(st.Dev), Ino: st.Ino, Size: st.Size, Mode: int64(st.Mode),
		ModTime: unix.TimespecToNsec(st.Mtim), ChangeTime: unix.TimespecToNsec(st.Ctim),
	}
}
