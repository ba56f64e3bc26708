//go:build !unix

package format

import "fmt"

// Intact compares the open file with what was parsed: ErrChanged when its size or time differ.
func (s *Shard) Intact() error {
	st, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("%s: %w", s.Path, err)
	}
	if st.Size() != s.size || st.ModTime().UnixNano() != s.mtime {
		return fmt.Errorf("%s: %w (size %d, now %d)", s.Path, ErrChanged, s.size, st.Size())
	}
	return nil
}
