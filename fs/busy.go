//go:build linux

package fs

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	_, err = bounded(func() (struct{}, error) { return struct{}{}, found.search(m) })
	return found.all(), err
}

type users struct {
	mu   sync.Mutex
	list []User
}

func (u *users) all() []User {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.list)
}

// search looks at maps last: reading them can wait for a process that waits for the mount.
func (u *users) search(m Mounted) error {
	procs, err := filepath.Glob("/proc/[0-9]*")
	for _, used := range []func(proc string) (how, path string, ok bool){m.linked, m.mapped} {
		procs = slices.DeleteFunc(procs, func(proc string) bool {
			how, path, ok := used(proc)
			if ok {
				u.add(proc, how, path)
			}
			return ok
		})
	}
	return err
}

func (u *users) add(proc, how, path string) {
	pid, _ := strconv.Atoi(filepath.Base(proc))
	comm, _ := os.ReadFile(proc + "/comm")
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, User{PID: pid, Command: strings.TrimSpace(string(comm)), How: how, Path: path})
}

// linked finds the first of a process's links that leads into the mount. The kernel answers from its
// own memory where they lead.
func (m Mounted) linked(proc string) (how, path string, ok bool) {
	links := []string{"cwd", "root", "exe"}
	fds, _ := os.ReadDir(proc + "/fd")
	for _, fd := range fds {
		links = append(links, "fd/"+fd.Name())
	}
	for _, link := range links {
		path, err := os.Readlink(proc + "/" + link)
		if err == nil && (path == m.Dir || strings.HasPrefix(path, m.Dir+"/")) {
			return strings.Replace(link, "/", " ", 1), path, true
		}
	}
	return "", "", false
}

// mapped looks for a map of a file on the mount's device.
func (m Mounted) mapped(proc string) (how, path string, ok bool) {
	f, err := os.Open(proc + "/maps")
	if err != nil {
		return "", "", false
	}
	defer f.Close()
	dev := fmt.Sprintf("%02x:%02x", m.Major, m.Minor)
	for s := bufio.NewScanner(f); s.Scan(); {
		// address perms offset dev inode path
		if fields := strings.Fields(s.Text()); len(fields) >= 6 && fields[3] == dev {
			return "map", strings.Join(fields[5:], " "), true
		}
	}
	return "", "", false
}
