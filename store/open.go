package store

import (
	"weightfs/format"
	"weightfs/format/set"
)

// Open opens the checkpoint at the place.
func (p Place) Open(opt format.Options) (*format.Checkpoint, error) {
	if p.Blobs == nil {
		c, err := format.Open(p.Path, opt)
		if err == nil {
			c.Warnings = append(c.Warnings, p.Warnings...)
		}
		return c, err
	}
	s, err := p.Find(set.Options{Partial: opt.Partial})
	if err != nil {
		return nil, err
	}
	return format.OpenSet(p.Path, s, opt)
}
