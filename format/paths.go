package format

import "os"

// Paths are where the checkpoint's files are opened, by name; some are opened when they are first used.
// With them is the source where that is a directory: a file in it may be replaced meanwhile.
func (c *Checkpoint) Paths() []string {
	var paths []string
	for _, f := range c.own {
		paths = append(paths, f.Path)
	}
	if st, err := os.Stat(c.Source); err == nil && st.IsDir() {
		paths = append(paths, c.Source)
	}
	return paths
}
