//go:build unix && !linux

package elements

import "os"

// nameless opens a new file that no directory lists.
func nameless(dir string) (*os.File, error) { return unlinked(dir) }
