package store

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"weightfs/format/set"
)

const repoPrefix = "models--"

// A hubRef is a model of the hub, with what may follow its name.
type hubRef struct{ id, rev, path string }

// HubCache is the directory of the hub client's cache, by the client's own rules.
func (e Env) HubCache() string {
	for _, name := range []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"} {
		if dir := e.dir(name); dir != "" {
			return dir
		}
	}
	if dir := e.dir("HF_HOME"); dir != "" {
		return filepath.Join(dir, "hub")
	}
	if dir := e.dir("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "huggingface", "hub")
	}
	return e.home(".cache", "huggingface", "hub")
}

// page is a page of the hub in a browser.
var page = regexp.MustCompile(`^(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/`)

// parseHub takes apart hf:… and a page's address; false for any other source.
func parseHub(source string) (hubRef, bool, error) {
	if rest, ok := strings.CutPrefix(source, "hf:"); ok {
		ref, err := splitHub(source, strings.TrimPrefix(rest, "//"))
		return ref, true, err
	}
	prefix := page.FindString(source)
	if prefix == "" {
		return hubRef{}, false, nil
	}
	rest, _, _ := strings.Cut(source[len(prefix):], "?")
	rest, _, _ = strings.Cut(rest, "#")
	ref, err := splitPage(source, strings.TrimSuffix(rest, "/"))
	return ref, true, err
}

// splitHub takes apart [models/]ORG/NAME[@REV][/PATH].
func splitHub(source, rest string) (hubRef, error) {
	rest = strings.TrimPrefix(rest, "models/")
	parts := strings.Split(strings.TrimSuffix(rest, "/"), "/")
	if err := onlyModels(source, parts[0]); err != nil {
		return hubRef{}, err
	}
	n := 2
	if len(parts) == 1 || strings.Contains(parts[0], "@") {
		n = 1 // gpt2: the oldest models have no owner
	}
	name, rev, _ := strings.Cut(parts[n-1], "@")
	id, tail := strings.Join(append(slices.Clone(parts[:n-1]), name), "/"), parts[n:]
	if rev == "refs" && len(tail) >= 2 { // refs/pr/7
		rev, tail = strings.Join(append([]string{rev}, tail[:2]...), "/"), tail[2:]
	}
	return newRef(source, id, rev, strings.Join(tail, "/"))
}

// splitPage takes apart ORG/NAME[/(tree|blob|resolve|raw|blame|commit)/REV[/PATH]].
func splitPage(source, rest string) (hubRef, error) {
	parts := strings.Split(rest, "/")
	if err := onlyModels(source, parts[0]); err != nil {
		return hubRef{}, err
	}
	verb := slices.IndexFunc(parts, func(p string) bool {
		return slices.Contains([]string{"tree", "blob", "resolve", "raw", "blame", "commit"}, p)
	})
	switch {
	case verb < 0 && len(parts) <= 2:
		return newRef(source, rest, "", "")
	case (verb == 1 || verb == 2) && len(parts) > verb+1:
		return newRef(source, strings.Join(parts[:verb], "/"), parts[verb+1], strings.Join(parts[verb+2:], "/"))
	}
	return hubRef{}, &NotFoundError{Source: source, Msg: "this page of the hub is no model's", Hint: "name it as hf://ORG/NAME"}
}

func onlyModels(source, kind string) error {
	if kind == "datasets" || kind == "spaces" || kind == "buckets" {
		return &NotFoundError{Source: source, Msg: "not a model: of the hub only models are read"}
	}
	return nil
}

var idPart = regexp.MustCompile(`^\w[\w.-]*$`)

func newRef(source, id, rev, path string) (hubRef, error) {
	if decoded, err := url.PathUnescape(rev); err == nil { // a branch a/b is written a%2Fb
		rev = decoded
	}
	for part := range strings.SplitSeq(id, "/") {
		if !idPart.MatchString(part) {
			return hubRef{}, &NotFoundError{Source: source, Msg: fmt.Sprintf("%q is no name of a model", id), Hint: "hf://ORG/NAME[@REVISION][/PATH]"}
		}
	}
	for _, name := range []string{rev, path} {
		if name == "" {
			continue
		}
		if _, err := set.Local(name); err != nil {
			return hubRef{}, &NotFoundError{Source: source, Msg: err.Error()}
		}
	}
	return hubRef{id, rev, path}, nil
}

func (e Env) resolveHub(source string, ref hubRef) (Place, error) {
	cache := e.HubCache()
	repo := repo{dir: filepath.Join(cache, repoPrefix+strings.ReplaceAll(ref.id, "/", "--")), source: source}
	if isDir(repo.dir) {
		return repo.place(ref.rev, ref.path)
	}
	hint := "hf download " + ref.id
	if other := similarRepo(cache, ref.id); other != "" {
		hint = "there is " + other
	}
	return Place{}, &NotFoundError{Source: source, Msg: "not in the hub's cache " + cache, Hint: hint}
}

// similarRepo finds a model whose id differs in case alone: the hub does not tell them apart.
func similarRepo(cache, id string) string {
	entries, _ := os.ReadDir(cache)
	for _, e := range entries {
		if other := set.RepoID(e.Name()); other != id && strings.EqualFold(other, id) {
			return other
		}
	}
	return ""
}

// A repo is a folder models--org--name of a hub cache.
type repo struct {
	dir    string
	source string // as the user named it, for messages
}

func (r repo) id() string {
	dir, err := filepath.Abs(r.dir)
	if err != nil {
		dir = r.dir
	}
	return set.RepoID(filepath.Base(dir))
}

// place is the snapshot of a revision, or a path in it.
func (r repo) place(rev, path string) (Place, error) {
	commit, warnings, err := r.commit(rev)
	if err != nil {
		return Place{}, err
	}
	p := r.snapshot(commit, warnings)
	if path == "" {
		return p, nil
	}
	p.Path, p.Display = filepath.Join(p.Path, filepath.FromSlash(path)), p.Display+"/"+path
	if _, err := os.Lstat(p.Path); err != nil {
		return Place{}, &NotFoundError{Source: r.source, Msg: fmt.Sprintf("%s has no %s in the cache", r.id(), path),
			Hint: fmt.Sprintf("hf download %s %s", r.id(), path)}
	}
	return p, nil
}

func (r repo) snapshot(commit string, warnings []string) Place {
	return Place{Path: filepath.Join(r.dir, "snapshots", commit), Display: r.id() + "@" + shorten(commit), Warnings: warnings}
}

func shorten(commit string) string { return commit[:min(len(commit), 12)] }

// commit finds the snapshot of a branch, a tag, a commit, or the unique beginning of one; without
// any that of main, or the only one, with a warning where what main is cannot be told.
func (r repo) commit(rev string) (found string, warnings []string, err error) {
	all, name := r.snapshots(), cmp.Or(rev, "main")
	commit, err := r.ref(name)
	absent := errors.Is(err, os.ErrNotExist)
	switch {
	case err == nil && slices.Contains(all, commit):
		return commit, nil, nil
	case err == nil:
		return "", nil, r.notFound(fmt.Sprintf("%s is commit %s, which is not in the cache", name, commit), all)
	case rev != "" && !absent:
		return "", nil, r.notFound(err.Error(), all)
	case !absent:
		warnings = r.unused(err)
	}
	var fit []string
	for _, commit := range all {
		if commit == rev {
			return commit, nil, nil
		}
		if rev == "" || len(rev) >= 4 && strings.HasPrefix(commit, rev) {
			fit = append(fit, commit)
		}
	}
	switch len(fit) {
	case 1:
		return fit[0], warnings, nil
	case 0:
		if rev == "" {
			return "", nil, r.notFound("no revision of it is in the cache", nil)
		}
		return "", nil, r.notFound(fmt.Sprintf("revision %q is not in the cache", rev), all)
	}
	msg := "several revisions in the cache and no refs/main"
	switch {
	case rev != "":
		msg = "several revisions begin so"
	case !absent:
		msg = "several revisions in the cache, and " + err.Error()
	}
	return "", nil, &AmbiguousError{Source: r.source, Msg: msg, Choices: r.sources(fit)}
}

func (r repo) notFound(msg string, there []string) error {
	e := &NotFoundError{Source: r.source, Msg: msg + ": " + r.dir}
	if len(there) > 0 {
		e.Hint = "there is " + strings.Join(r.sources(there), ", ")
	}
	return e
}

// sources are commits in the form that Resolve takes.
func (r repo) sources(commits []string) []string {
	out := make([]string, len(commits))
	for i, c := range commits {
		out[i] = "hf://" + r.id() + "@" + shorten(c)
	}
	return out
}

// snapshots are the revisions that are there.
func (r repo) snapshots() []string {
	entries, _ := os.ReadDir(filepath.Join(r.dir, "snapshots"))
	var out []string
	for _, e := range entries {
		if e.IsDir() || isDir(filepath.Join(r.dir, "snapshots", e.Name())) {
			out = append(out, e.Name())
		}
	}
	return out
}

var commitName = regexp.MustCompile(`^\w[\w.-]*$`)

// ref reads the commit of a branch or tag: os.ErrNotExist where there is none of this name, another error
// where its file does not hold a commit.
func (r repo) ref(name string) (string, error) {
	file := "refs/" + name
	data, err := readSmall(filepath.Join(r.dir, filepath.FromSlash(file)), 1<<12)
	switch {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return "", os.ErrNotExist
	case err != nil:
		return "", fmt.Errorf("%s cannot be read: %w", file, err)
	}
	commit := strings.TrimSpace(string(data))
	if !commitName.MatchString(commit) {
		return "", fmt.Errorf("%s holds %.50q, which is no commit", file, commit)
	}
	return commit, nil
}

// unused is the warning of a ref that is passed over.
func (r repo) unused(err error) []string {
	return []string{fmt.Sprintf("%s/%v: it is not used", r.dir, err)}
}
