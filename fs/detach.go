//go:build linux

package fs

import "fmt"

// Detach takes the mount at mp, which must be ours, out of the tree at once; who has files open there
// can go on reading them. On ErrForeign nothing is done.
func Detach(mp string) error {
	m, ok, err := Find(mp)
	switch {
	case err != nil:
		return err
	case !ok || !m.Ours():
		return fmt.Errorf("%s: %w", mp, ErrForeign)
	}
	return m.detach()
}
