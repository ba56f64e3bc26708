package store

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Reach is what the library's checkpoints lie in at the moment: its directory, and what links below it
// lead to outside of it, real paths. A link into a hub cache's folder of a model reaches all of that,
// whose files are links to others in it. all is false where the library is too large to look for links
// everywhere.
func (l *Library) Reach() (paths []string, all bool) {
	r := reach{left: maxReach, reached: map[string]bool{}}
	r.group.SetLimit(2 * runtime.GOMAXPROCS(0))
	r.follow(l.Dir())
	r.group.Wait()
	return r.paths, r.left >= 0
}

// maxReach is how many directories are searched for links. A hub cache has about six for each model.
const maxReach = 100_000

type reach struct {
	group errgroup.Group

	mu      sync.Mutex
	left    int
	paths   []string
	reached map[string]bool // the same
}

// follow takes what a path leads to, unless it is reached already. A directory is searched in turn.
func (r *reach) follow(path string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return
	}
	if repo := hubFolder(real); repo != "" {
		real = repo
	}
	st, err := os.Stat(real)
	if err == nil && r.add(real) && st.IsDir() {
		r.search(real, real)
	}
}

func (r *reach) add(real string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := real; ; p = filepath.Dir(p) {
		if r.reached[p] {
			return false
		}
		if p == filepath.Dir(p) {
			break
		}
	}
	r.reached[real] = true
	r.paths = append(r.paths, real)
	return true
}

// hubFolder is the folder models--org--name that a path leads into, empty for none.
func hubFolder(real string) string {
	_, rest, ok := strings.Cut(real, "/"+repoPrefix)
	if !ok {
		return ""
	}
	name, _, inside := strings.Cut(rest, "/")
	if !inside {
		return ""
	}
	return real[:len(real)-len(rest)] + name
}

// search looks for links in a directory below a root, both real paths, as far as the library looks:
// hidden names are not its own.
func (r *reach) search(root, dir string) {
	d, err := os.Open(dir)
	if err != nil || !r.take() {
		return
	}
	entries, _ := d.ReadDir(-1)
	d.Close()
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			again := func() error { r.search(root, path); return nil }
			if !r.group.TryGo(again) {
				again()
			}
		case e.Type()&os.ModeSymlink != 0 && !staysBelow(root, dir, path):
			r.follow(path)
		}
	}
}

func (r *reach) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left--
	return r.left >= 0
}

// staysBelow tells by a link's text alone that it leads to where the search comes by anyway: in a hub
// cache, that is every file.
func staysBelow(root, dir, link string) bool {
	target, err := os.Readlink(link)
	up := strings.TrimLeft(target, "./")
	if err != nil || filepath.IsAbs(target) || strings.Contains(up, "..") {
		return false
	}
	rest, ok := strings.CutPrefix(filepath.Join(dir, target), strings.TrimSuffix(root, "/"))
	return ok && strings.HasPrefix(rest, "/") && !strings.Contains(rest, "/.")
}
