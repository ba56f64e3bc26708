// Package set turns a path on disk into the list of files of one checkpoint. It reads names and
// indexes, never weights.
package set

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"weightfs/disk"
	"weightfs/format/detect"
	"weightfs/format/index"
	"weightfs/format/tensor"
)

// Options say how strict Find is.
type Options struct {
	Partial bool // a set with missing files is taken as far as it is there
}

// A Set is the files of one checkpoint.
type Set struct {
	Dir      string     // the directory that the other names are relative to
	Name     string     // what the user would call the checkpoint
	Stem     string     // of assembled/STEM.safetensors
	Index    string     // file name of the index; empty without one
	Files    []string   // the files that hold weights, in natural order
	Missing  []string   // named but not there; only with Options.Partial
	Map      *WeightMap `json:"-"` // the index's weight_map; nil without an index
	Side     []string   // small files that belong to the model: its config, tokenizer and so on
	Warnings []string   // what was left out, each a sentence

	// Rename is the checkpoint's name of a tensor that a file of the set calls so; nil where the
	// files' names are the names.
	Rename func(file, tensor string) string `json:"-"`
}

// Path is where a file of the set lies.
func (s *Set) Path(name string) string {
	path := filepath.Join(s.Dir, filepath.FromSlash(name))
	return followText(snapshotRepo(filepath.Dir(path)), path)
}

// Find lists the files of the checkpoint at path: a file, one part of a numbered set, an index, or a
// directory. Its errors are an *IncompleteError, a *SeveralError, a *NoneError, a
// *tensor.FormatError, or the operating system's.
func Find(path string, opt Options) (*Set, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, lost(path, err)
	case st.IsDir():
		return findDir(path, opt)
	case !st.Mode().IsRegular():
		return nil, irregular(path, st)
	}
	return findFile(filepath.Dir(path), filepath.Base(path), opt)
}

// lost tells a link whose target is missing and an unfinished download from a path that is not there
// at all.
func lost(path string, err error) error {
	if a, ok := absentFile(filepath.Dir(path), filepath.Base(path)); ok && (a.Target != "" || a.Download != "") {
		return &IncompleteError{Dir: filepath.Dir(path), Total: 1, Missing: []Absent{a}}
	}
	return err
}

func irregular(path string, st os.FileInfo) error {
	return &tensor.FormatError{File: path, Off: -1, Err: tensor.ErrMalformed,
		Msg: fmt.Sprintf("not a regular file (%s)", st.Mode().Type())}
}

func findDir(dir string, opt Options) (*Set, error) {
	s, err := Look(dir)
	if err != nil {
		return nil, err
	}
	if s.Choice == "" {
		return nil, s.fault()
	}
	set := &Set{Dir: dir, Name: dirName(dir)}
	switch {
	case isIndex(s.Choice):
		err = set.readIndex(s.Choice)
	case s.numbered != nil:
		set.addNumbered(s.numbered)
	default:
		set.Files, set.Stem = []string{s.Choice}, knownStem(s.Choice)
	}
	if err == nil {
		err = set.check(opt)
	}
	if err != nil {
		return nil, err
	}
	set.warnStray(s)
	set.warnOthers(s)
	set.addSide(s)
	return set, nil
}

// fault says why there is no one checkpoint in the directory.
func (s *Survey) fault() error {
	known := s.known()
	if known != nil || !s.several {
		return &NoneError{Dir: s.Dir, Names: s.names(), Known: known}
	}
	names := s.Candidates
	if s.Pipeline {
		names = append(slices.Clone(names), s.Dirs...)
	}
	return &SeveralError{Dir: s.Dir, Names: names}
}

// findFile is for a file that the user named: an index, a part of a set, or a checkpoint by itself.
func findFile(dir, name string, opt Options) (*Set, error) {
	s := &Survey{Dir: dir}
	err := s.read()
	if err != nil {
		s = &Survey{Dir: dir} // it may be entered and not listed: the file stands alone
	}
	set := &Set{Dir: dir, Name: dirName(dir)}
	evident := s.has("config.json") || s.has("adapter_config.json") || standard(name)
	group := s.groupOf(name)
	switch {
	case isIndex(name) || strings.EqualFold(filepath.Ext(name), ".json"):
		evident = true
		if err = set.readIndex(name); err != nil {
			err = cmp.Or(s.misnamed(name), err)
		}
	default:
		if err = s.misnamed(name); err == nil {
			err = set.followIndex(s, name, group != nil)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case set.Index != "":
		evident = true
		s.sort()
		set.warnStray(s)
	case group != nil:
		set.addNumbered(group)
		if !evident {
			set.Name = group.name()
		}
	default:
		set.Name, set.Files, set.Stem = name, []string{name}, knownStem(name)
	}
	if err := set.check(opt); err != nil {
		return nil, err
	}
	if evident {
		s.sort()
		set.addSide(s)
	}
	return set, nil
}

// misnamed is the fault of a file that lies beside the weights of a checkpoint and is none itself, such
// as config.json: the directory was meant.
func (s *Survey) misnamed(name string) error {
	if isWeights(name) || isIndex(name) {
		return nil
	}
	look, err := Look(s.Dir)
	if err != nil || look.Choice == "" && len(look.Candidates) == 0 && !look.Pipeline {
		return nil
	}
	path := filepath.Join(s.Dir, name)
	if recognised(path) {
		return nil
	}
	return &tensor.FormatError{File: path, Off: -1, Err: tensor.ErrMalformed,
		Msg: "no checkpoint, but a file beside one", Hint: "name the directory: " + printable(s.Dir)}
}

// recognised tells whether a file may be a checkpoint by its content, or have one in it, or cannot be read.
func recognised(path string) bool {
	f, st, err := disk.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	_, err = detect.Detect(f, st.Size())
	_, fault := errors.AsType[*tensor.FormatError](err)
	return !fault || errors.Is(err, detect.ErrPacked)
}

// followIndex takes the index beside a file that names it. An index that cannot be read is the
// fault of a numbered set and no concern of a lone file.
func (s *Set) followIndex(look *Survey, name string, numbered bool) error {
	for _, index := range look.indexesFor(name) {
		other := &Set{Dir: s.Dir, Name: s.Name}
		if err := other.readIndex(index); err != nil {
			if numbered {
				return err
			}
			s.Warnings = append(s.Warnings, fmt.Sprintf("%s is not used: %v", index, err))
			continue
		}
		if slices.Contains(other.Files, name) {
			*s = *other
			return nil
		}
	}
	return nil
}

func (s *Set) readIndex(name string) error {
	m, err := readIndex(s.Path(name))
	if err != nil {
		return err
	}
	s.Index, s.Map, s.Stem = name, m, indexStem(name)
	seen := map[string]bool{}
	for _, w := range m.Weights {
		if !seen[w.File] {
			seen[w.File] = true
			s.Files = append(s.Files, w.File)
		}
	}
	slices.SortFunc(s.Files, naturally)
	return nil
}

// naturally compares names that differ, for slices.SortFunc.
func naturally(a, b string) int {
	if index.NaturalLess(a, b) {
		return -1
	}
	return 1
}

func (s *Set) addNumbered(g *numberedSet) {
	s.Files = g.files()
	s.Stem = knownStem(g.name())
}

// check parts what is there from what is missing.
func (s *Set) check(opt Options) error {
	var there []string
	var absent []Absent
	for _, name := range s.Files {
		st, err := os.Stat(s.Path(name))
		a, isAbsent := Absent{}, false
		if err != nil {
			a, isAbsent = absentFile(s.Dir, name)
		}
		switch {
		case isAbsent:
			absent = append(absent, a)
		case err != nil:
			return err
		case !st.Mode().IsRegular():
			return irregular(s.Path(name), st)
		default:
			there = append(there, name)
		}
	}
	if len(absent) == 0 {
		return nil
	}
	fault := &IncompleteError{Dir: s.Dir, Index: s.Index, Total: len(s.Files), Missing: absent,
		Partial: len(there) > 0, Unfinished: unfinished(s.Dir)}
	if !opt.Partial || !fault.Partial {
		return fault
	}
	s.Files = there
	for _, a := range absent {
		s.Missing = append(s.Missing, a.Name)
	}
	s.Warnings = append(s.Warnings, fault.summary())
	return nil
}

// warnStray names weights of the same kind that lie beside the set and are not of it, such as
// consolidated.safetensors beside the shards of the same model.
func (s *Set) warnStray(look *Survey) {
	f := familyOf(s.Files[0])
	if f == nil {
		return
	}
	var stray []string
	for _, name := range look.weights(f) {
		if !slices.Contains(s.Files, name) && !slices.Contains(s.Missing, name) {
			stray = append(stray, name)
		}
	}
	if len(stray) == 0 {
		return
	}
	why := ""
	if s.Index != "" {
		why = " (" + s.Index + " does not name them)"
	}
	s.Warnings = append(s.Warnings, LeftOut+Enumerate(stray, maxStray)+why)
}

// warnOthers names checkpoints of other formats beside the one that a directory is taken for. Those that
// go by the same standard name are its weights once more, as pytorch_model.bin beside model.safetensors.
func (s *Set) warnOthers(look *Survey) {
	own, twin := familyOf(s.Files[0]), standardStem(s.Files[0])
	others := slices.DeleteFunc(slices.Clone(look.Candidates), func(name string) bool {
		f := familyOf(name)
		if isIndex(name) {
			f = familyOf(indexOf(name))
		}
		return f == own || slices.Contains(s.Files, name) || f == torch && twin != "" && standardStem(name) == twin
	})
	if len(others) > 0 {
		s.Warnings = append(s.Warnings, LeftOut+Enumerate(others, maxStray)+" (--many shows all)")
	}
}

// LeftOut begins the warnings that name weights beside those of a set.
const LeftOut = "left out: "

const maxStray = 10

// Enumerate lists names up to a limit, for a message.
func Enumerate(names []string, limit int) string {
	shown := make([]string, min(len(names), limit))
	for i := range shown {
		shown[i] = printable(names[i])
	}
	list := strings.Join(shown, ", ")
	if len(names) > limit {
		list = fmt.Sprintf("%s and %d more", list, len(names)-limit)
	}
	return list
}

// printable quotes a name that would break a line or a terminal.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// dirName is what people call a directory: a hub snapshot goes by its repository.
func dirName(dir string) string {
	if repo := snapshotRepo(dir); repo != "" {
		return RepoID(filepath.Base(repo))
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.Base(dir)
}

// absentFile describes a file of a set that is not there; false when something is.
func absentFile(dir, name string) (Absent, bool) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if _, err := os.Stat(path); err == nil || !notThere(err) {
		return Absent{}, false
	}
	a := Absent{Name: name, Download: download(path)}
	if target, err := os.Readlink(path); err == nil {
		a.Target = target
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		if a.Download == "" {
			a.Download = download(target)
		}
	}
	return a, true
}

func notThere(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, errNotDir) || errors.Is(err, errLoop)
}
