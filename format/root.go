package format

import "slices"

// Root is the top of the tree.
func (c *Checkpoint) Root() Dir {
	d := &fixedDir{stat: c.dirStat(c.ino(inoRoot))}
	ino := uint64(inoTop)
	file := func(name string, content func() (Content, error)) {
		n := c.ino(ino)
		d.add(fixedEntry{name, 0, n, func() (Node, error) {
			b, err := content()
			if err != nil {
				return nil, err
			}
			return &fileNode{c.fileStat(c.spanning, n, b.Size()), content}, nil
		}})
		ino++
	}
	literal := func(text func() []byte) func() (Content, error) {
		return func() (Content, error) { return newSegments(Literal(text())), nil }
	}
	file("README.txt", literal(c.readme))
	file("tensors.json", func() (Content, error) { return newSegments(c.tensors().segment()), nil })
	file("metadata.json", literal(c.metadata))
	if c.shows(rawView.name) {
		sumsIno := c.ino(ino)
		d.add(fixedEntry{"SHA256SUMS", 0, sumsIno, func() (Node, error) { return c.sumsFile(sumsIno), nil }})
	}
	for _, name := range Views {
		if c.shows(name) {
			d.addNode(name, c.viewRoot(name))
		}
	}
	return d
}

func (c *Checkpoint) shows(view string) bool {
	return c.opt.Views == nil || slices.Contains(c.opt.Views, view)
}

// viewRoot is the top directory of a view.
func (c *Checkpoint) viewRoot(name string) Dir {
	switch name {
	case "rows":
		return &rowsDir{viewDir{c, rowsView, 0}}
	case "parts":
		return &partsDir{c, 0}
	case "by-name":
		return byNameDir{c}
	case "assembled":
		return c.assembledDir()
	case "files":
		return c.filesDir()
	}
	for _, v := range []*view{rawView, jsonView, npyView, f32View, statsView} {
		if v.name == name {
			return &viewDir{c, v, 0}
		}
	}
	return &fixedDir{stat: c.dirStat(0)}
}
