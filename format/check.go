package format

import (
	"golang.org/x/sync/errgroup"

	"weightfs/format/set"
	"weightfs/format/tensor"
)

// Check parses every file of a set and gives all faults, those that are tolerable too: Open stops at
// the first.
func Check(s *set.Set) []error {
	headers, faults := make([]*tensor.Header, len(s.Files)), make([]error, len(s.Files))
	var group errgroup.Group
	group.SetLimit(openJobs)
	for i, name := range s.Files {
		group.Go(func() error {
			headers[i], faults[i] = checkFile(name, s.Path(name))
			return nil
		})
	}
	group.Wait()
	var names []string
	var parsed []*tensor.Header
	for i, h := range headers {
		if h != nil {
			names, parsed = append(names, s.Files[i]), append(parsed, h)
		}
	}
	checkAlike(names, parsed)
	var all []error
	for i, name := range s.Files {
		if faults[i] != nil {
			all = append(all, faults[i])
			continue
		}
		for _, fault := range headers[i].Tolerable {
			fault.File = s.Path(name)
			all = append(all, fault)
		}
	}
	return all
}

func checkFile(name, path string) (*tensor.Header, error) {
	s, h, err := openShard(name, path)
	if s != nil {
		defer s.Close()
	}
	return h, err
}
