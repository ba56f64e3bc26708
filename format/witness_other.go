//go:build !unix

package format

import "os"

func witnessOf(path string) (witness, error) {
	st, err := os.Stat(path)
	return witnessFrom(path, st, err)
}

func witnessOfLink(path string) (witness, error) {
	st, err := os.Lstat(path)
	w, err := witnessFrom(path, st, err)
	w.Link = true
	return w, err
}

// witness is the open file's, whatever lies at its path by now.
func (s *Shard) witness(path string) (witness, error) {
	st, err := s.file.Stat()
	return witnessFrom(path, st, err)
}

func witnessFrom(path string, st os.FileInfo, err error) (witness, error) {
	if err != nil {
		return witness{}, err
	}
	return witness{Path: path, Size: st.Size(), Mode: int64(st.Mode()), ModTime: st.ModTime().UnixNano()}, nil
}
