package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A cacheList is the models of a hub cache, read once for all owners that are listed in a moment.
type cacheList struct {
	mu     sync.Mutex
	dir    string
	at     time.Time
	owners []string            // with "" for the models that have none
	names  map[string][]string // by owner
	err    error
}

// of gives the names of the cached models by owner.
func (c *cacheList) of(dir string) ([]string, map[string][]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir == dir && time.Since(c.at) < rescan {
		return c.owners, c.names, c.err
	}
	entries, err := os.ReadDir(dir)
	c.dir, c.err, c.owners, c.names = dir, err, nil, map[string][]string{}
	for _, e := range entries {
		id, ok := strings.CutPrefix(e.Name(), repoPrefix)
		owner, name, owned := strings.Cut(id, "--")
		if !owned {
			owner, name = "", id
		}
		if !ok || strings.Contains(name, "--") {
			continue // no id of the hub
		}
		if c.names[owner] == nil {
			c.owners = append(c.owners, owner)
		}
		c.names[owner] = append(c.names[owner], name)
	}
	c.at = time.Now()
	return c.owners, c.names, c.err
}

// scanCache lists a hub cache: a directory for each owner, and the models that have none.
func (l *Library) scanCache(cache string) ([]entry, error) {
	owners, names, err := l.cached.of(cache)
	var entries []entry
	for _, owner := range owners {
		if owner == "" {
			continue
		}
		entries = append(entries, entry{name: owner, path: cache, scan: func() ([]entry, error) {
			_, names, err := l.cached.of(cache)
			return l.models(cache, owner+"/", names[owner]), err
		}})
	}
	return append(entries, l.models(cache, "", names[""])...), err
}

func (l *Library) models(cache, owner string, names []string) []entry {
	return entriesOf(names, func(name string) []entry { return l.revisions(cachedRepo(cache, owner+name), name) })
}

func cachedRepo(cache, id string) repo {
	dir := filepath.Join(cache, repoPrefix+strings.ReplaceAll(id, "/", "--"))
	return repo{dir: dir, source: dir}
}

// revisions are the entries of a hub cache's model: the one that its name alone means, and the others
// by the name of their branch, tag or commit.
func (l *Library) revisions(r repo, name string) []entry {
	all := r.snapshots()
	main, err := r.ref("main")
	var warnings []string
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		warnings = r.unused(err)
	}
	if err != nil && len(all) == 1 {
		main = all[0]
	}
	var entries []entry
	var names map[string]string
	if len(all) > 1 || !slices.Contains(all, main) {
		names = r.refNames()
	}
	for _, commit := range all {
		as := name
		if commit != main {
			as += "@" + firstOf(names[commit], shorten(commit))
		}
		dir := filepath.Join(r.dir, "snapshots", commit)
		for _, e := range l.below(as, dir, nil) {
			if e.resolve != nil {
				e.resolve = func() (Place, error) { return r.snapshot(commit, warnings), nil }
			}
			entries = append(entries, e)
		}
	}
	return entries
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// refNames are the commits' branches and tags, of which those with a slash are no file names.
func (r repo) refNames() map[string]string {
	entries, _ := os.ReadDir(filepath.Join(r.dir, "refs"))
	names := map[string]string{}
	for _, e := range entries {
		if commit, err := r.ref(e.Name()); err == nil && names[commit] == "" {
			names[commit] = e.Name()
		}
	}
	return names
}

// scanOllama lists a store of Ollama as NAMESPACE/NAME/TAG; of hosts other than the public one as
// HOST/NAMESPACE/NAME/TAG.
func scanOllama(store string) ([]entry, error) {
	v2, old := filepath.Join(store, "manifests-v2"), filepath.Join(store, "manifests")
	public := []string{filepath.Join(v2, publicHostV2), filepath.Join(old, publicHost), filepath.Join(old, publicHostV2)}
	entries := manifestDirs(store, public, 2, "")
	for _, host := range union([]string{v2, old}) {
		plain := strings.ReplaceAll(host, "%3A", ":")
		if plain == publicHost || plain == publicHostV2 || slices.ContainsFunc(entries, func(e entry) bool { return e.name == plain }) {
			continue
		}
		dirs := []string{filepath.Join(v2, host), filepath.Join(old, plain)}
		entries = append(entries, entry{name: plain, path: firstDir(dirs), scan: func() ([]entry, error) {
			return manifestDirs(store, dirs, 2, plain+"/"), nil
		}})
	}
	return entries, nil
}

// manifestDirs lists directories that stand for one, the first coming first, and below depth 0 the
// manifests.
func manifestDirs(store string, dirs []string, depth int, prefix string) []entry {
	var entries []entry
	for _, name := range union(dirs) {
		below := make([]string, len(dirs))
		for i, dir := range dirs {
			below[i] = filepath.Join(dir, name)
		}
		if depth > 0 {
			if dir := firstDir(below); dir != "" {
				entries = append(entries, entry{name: name, path: dir, scan: func() ([]entry, error) {
					return manifestDirs(store, below, depth-1, prefix+name+"/"), nil
				}})
			}
			continue
		}
		for _, path := range below {
			if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
				display := ollamaPrefix + strings.TrimPrefix(strings.TrimSuffix(prefix, "/"), "library/") + ":" + name
				entries = append(entries, entry{name: name, path: path, resolve: func() (Place, error) {
					return ollamaPlace(store, path, display)
				}})
				break
			}
		}
	}
	return entries
}

// union is the names in several directories.
func union(dirs []string) []string {
	var names []string
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") {
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func firstDir(dirs []string) string {
	for _, dir := range dirs {
		if isDir(dir) {
			return dir
		}
	}
	return ""
}
