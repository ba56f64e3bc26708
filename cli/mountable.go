//go:build linux

package cli

import (
	"slices"

	"weightfs/format"
	"weightfs/format/tensor"
	"weightfs/store"
)

// A mountable is what a mount shows: one checkpoint, or a directory of many.
type mountable struct {
	source   string
	root     format.Dir
	many     bool
	size     uint64 // of what df shows
	sum      string // for a person
	facts    tensor.Object
	log      []any // the same for the log
	warnings []string
	keep     func()                            // to be called once it is mounted
	reach    func() (paths []string, all bool) // what it will open
	health   func() error
}

// openMountable opens what is to be mounted, and refuses a mount point that would be in its way.
func (m *mounting) openMountable(source string) (*mountable, error) {
	c, library, err := m.openAny(source)
	switch {
	case err != nil:
		return nil, err
	case library != nil:
		return m.manyMountable(library)
	}
	one := oneMountable(c)
	one.warnings = slices.Concat(c.Warnings, notShown(source, "--many"))
	return one, m.checkShards(c)
}

func oneMountable(c *format.Checkpoint) *mountable {
	return &mountable{
		source: c.Source, root: c.Root(), size: c.TotalBytes(), warnings: c.Warnings, keep: c.Keep, health: c.Fresh,
		sum:   plural(c.Len(), "tensor") + ", " + sizeText(c.TotalBytes()),
		facts: tensor.Object{{Key: "tensors", Value: c.Len()}, {Key: "total_bytes", Value: c.TotalBytes()}},
		log:   []any{"tensors", c.Len(), "bytes", c.TotalBytes()},
		reach: func() ([]string, bool) { return c.Paths(), true },
	}
}

// manyMountable counts the checkpoints for its message only: they come and go.
func (m *mounting) manyMountable(l *store.Library) (*mountable, error) {
	if !m.passedDevice() {
		if err := m.checkSource(l.Dir()); err != nil {
			return nil, err
		}
	}
	sum := "many checkpoints"
	if n, all := l.Count(); all {
		sum = plural(n, "checkpoint")
	}
	return &mountable{
		source: l.Dir(), root: l.Root(), many: true, warnings: l.Warnings(), keep: func() {},
		health: func() error { return nil }, // each checkpoint has its own, and its ERROR.txt
		sum:    sum,
		facts:  tensor.Object{{Key: "many", Value: true}, {Key: "tensors", Value: nil}, {Key: "total_bytes", Value: nil}},
		log:    []any{"many", true},
		reach:  l.Reach,
	}, nil
}
