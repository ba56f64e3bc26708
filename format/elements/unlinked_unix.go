//go:build unix

package elements

import "os"

// unlinked opens a new file and takes its name away.
func unlinked(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "weightfs-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
