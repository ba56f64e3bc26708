// Package cachedir keeps what weightfs may compute again, in one directory of limited size and never beside
// a model. What the files hold is for those who write them.
package cachedir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

const (
	name   = "weightfs"
	system = "/var/cache/" + name
)

// Dir is the cache directory, which need not exist: $XDG_CACHE_HOME/weightfs, else
// $CACHE_DIRECTORY, which systemd sets for a unit, else /var/cache/weightfs for root and what XDG names
// as the default, ~/.cache/weightfs, for everybody else. A relative path counts as unset, as XDG has it.
func Dir() (string, error) {
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, name), nil
	}
	// A unit with several cache directories gets them with colons between them.
	if dir, _, _ := strings.Cut(os.Getenv("CACHE_DIRECTORY"), ":"); filepath.IsAbs(dir) {
		return dir, nil
	}
	if os.Geteuid() == 0 {
		return system, nil
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", errors.New("no cache directory: neither XDG_CACHE_HOME nor HOME is set")
	}
	return filepath.Join(home, ".cache", name), nil
}
