//go:build linux

package cli

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"weightfs/cachedir"
	"weightfs/sandbox"
)

// confine prepares the sandbox of a server, and gives what enters it. What is still opened afterwards is
// files of the checkpoint and the cache; /dev/log is for a syslog that was started anew.
func (s *server) confine(c *mountable) (enter func()) {
	_ = time.Now().Format("MST") // the zone is read from a file at its first use
	read, all := c.reach()
	if !all {
		s.log.Warn("not all links in the source were found, and some may lead to what cannot be read (--no-sandbox)", "source", c.source)
	}
	if s.metricsAddr != "" {
		read = append(read, "/proc/stat") // when this process was started
	}
	policy := sandbox.Policy{Read: read, Write: writable(), Connect: []string{"/dev/log"}}
	box, err := sandbox.New(policy)
	if err != nil {
		s.log.Warn("not confined", "err", err)
		return nil
	}
	return func() {
		if err := box.Enter(); err != nil {
			s.log.Warn("not confined", "err", err)
			return
		}
		s.restricted = true
		s.log.Debug("confined", "landlock", sandbox.Version(), "read", policy.Read, "write", policy.Write, "capabilities", "cap_dac_read_search at most")
	}
}

// writable is the cache directory or, where that is of no use, the one for temporary files, since some
// tensors must be unpacked somewhere.
func writable() []string {
	dir, err := cachedir.Dir()
	if err != nil || os.MkdirAll(dir, 0o700) != nil || !usable(dir) {
		dir = os.TempDir()
	}
	return []string{dir}
}

// usable tells whether the server can write to a directory when it is confined: then root is a user like
// any other.
func usable(dir string) bool {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil || unix.Access(dir, unix.W_OK|unix.X_OK) != nil {
		return false
	}
	return os.Geteuid() != 0 || st.Uid == 0 || st.Mode&0o002 != 0
}
