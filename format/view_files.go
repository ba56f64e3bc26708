package format

import (
	"path/filepath"

	"weightfs/format/index"
)

// An ownFile is a file of the checkpoint, as it is called and where it lies.
type ownFile struct{ Name, Path string }

// filesDir is files/: the checkpoint's own files as absolute links.
func (c *Checkpoint) filesDir() *fixedDir {
	d := &fixedDir{stat: c.dirStat(c.ino(inoFiles))}
	for i, f := range c.own {
		if abs, err := filepath.Abs(f.Path); err == nil {
			// A file of a subfolder (unet/x.safetensors) is one name here.
			d.addNode(index.Flat(f.Name), c.link(c.ownIno(i), abs))
		}
	}
	return d
}
