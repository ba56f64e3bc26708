//go:build linux

package fs

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// A User is a process that keeps a mount busy.
type User struct {
	PID     int
	Command string
	How     string // `cwd`, `root`, `exe`, `fd 3` or `map`
	Path    string // of what it uses, where that is known
}

// Busy lists the processes that use the mount at mp, those of other users only for root. It reads
// /proc alone and gives what it found when a stuck process holds it up.
func Busy(mp string) ([]User, error) {
	m, ok, err := Find(mp)
	if err != nil || !ok {
		return nil, err
	}
	var found users
	_, err = bounded(func() (struct{}, error) {
		procs, err := filepath.Glob("/proc/[0-9]*")
		for _, proc := range procs {
			found.add(m, proc)
		}
		return struct{}{}, err
	})
	return found.all(), err
}

type users struct {
	mu   sync.Mutex
	list []User
}

func (u *users) all() []User {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]User(nil), u.list...)
}

// add looks at one process, and keeps the first use of the mount.
func (u *users) add(m Mounted, proc string) {
	how, path, ok := usedBy(m, proc)
	if !ok {
		return
	}
	pid, _ := strconv.Atoi(filepath.Base(proc))
	comm, _ := os.ReadFile(proc + "/comm")
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, User{PID: pid, Command: strings.TrimSpace(string(comm)), How: how, Path: path})
}

func usedBy(m Mounted, proc string) (how, path string, ok bool) {
	for _, link := range []string{"cwd", "root", "exe"} {
		if path, ok := m.linked(proc + "/" + link); ok {
			return link, path, true
		}
	}
	fds, _ := os.ReadDir(proc + "/fd")
	for _, fd := range fds {
		if path, ok := m.linked(proc + "/fd/" + fd.Name()); ok {
			return "fd " + fd.Name(), path, true
		}
	}
	path, ok = m.mapped(proc + "/maps")
	return "map", path, ok
}

// linked reads where a link of /proc leads, which the kernel answers from its own memory.
func (m Mounted) linked(link string) (string, bool) {
	path, err := os.Readlink(link)
	if err != nil {
		return "", false
	}
	return path, path == m.Dir || strings.HasPrefix(path, m.Dir+"/")
}

// mapped looks for a map of a file on the mount's device.
func (m Mounted) mapped(maps string) (string, bool) {
	f, err := os.Open(maps)
	if err != nil {
		return "", false
	}
	defer f.Close()
	dev := fmt.Sprintf("%02x:%02x", m.Major, m.Minor)
	for s := bufio.NewScanner(f); s.Scan(); {
		// address perms offset dev inode path
		if fields := strings.Fields(s.Text()); len(fields) >= 6 && fields[3] == dev {
			return strings.Join(fields[5:], " "), true
		}
	}
	return "", false
}
