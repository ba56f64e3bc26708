//go:build !unix

package format

import "fmt"

// Intact compares the open file with what was parsed, for a read at off: ErrChanged when its size or time
// differ.
func (s *Shard) Intact(off int64) error {
	st, err := s.file.Stat()
	if err != nil {
		return &ReadError{s, off, err}
	}
	if st.Size() != s.size || st.ModTime().UnixNano() != s.mtime {
		return &ReadError{s, off, fmt.Errorf("%w (size %d, now %d)", ErrChanged, s.size, st.Size())}
	}
	return nil
}
