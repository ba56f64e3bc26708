package format

import (
	"golang.org/x/sync/errgroup"

	"weightfs/format/set"
)

// Check parses every file of a set and gives all faults, those that are tolerable too: Open stops at
// the first.
func Check(s *set.Set) []error {
	found := make([][]error, len(s.Files))
	var group errgroup.Group
	group.SetLimit(openJobs)
	for i, name := range s.Files {
		group.Go(func() error {
			found[i] = checkFile(name, s.Path(name))
			return nil
		})
	}
	group.Wait()
	var all []error
	for _, list := range found {
		all = append(all, list...)
	}
	return all
}

func checkFile(name, path string) (faults []error) {
	s, h, err := openShard(name, path)
	if s != nil {
		defer s.Close()
	}
	if err != nil {
		return []error{err}
	}
	for _, fault := range h.Tolerable {
		fault.File = path
		faults = append(faults, fault)
	}
	return faults
}
