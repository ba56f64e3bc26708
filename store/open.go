package store

import (
	"weightfs/format"
	"weightfs/format/set"
)

// Open opens the checkpoint at the place.
func (p Place) Open(opt format.Options) (*format.Checkpoint, error) {
	if p.Blobs == nil {
		return format.Open(p.Path, opt)
	}
	s, err := p.Find(set.Options{Partial: opt.Partial})
	if err != nil {
		return nil, err
	}
	s.Warnings = append(s.Warnings, p.Warnings...)
	return format.OpenSet(p.Path, s, opt)
}
