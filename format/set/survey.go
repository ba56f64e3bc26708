package set

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weightfs/disk"
	"weightfs/format/detect"
)

// A Survey is what a directory's names say of the checkpoints in it.
type Survey struct {
	Dir        string
	Choice     string   // the file or index that Find takes of the directory; empty for none or several
	Candidates []string // every checkpoint that is a file at the directory's own level
	Dirs       []string // the directories below it
	Pipeline   bool     // a diffusers pipeline: its directories are the components

	files    []string // all but directories; in natural order once sorted
	hidden   []string // whose names begin with a dot: macOS' ._model.safetensors, .git, .cache
	several  bool
	numbered *numberedSet // with Choice: the set that it stands for
}

// Look surveys a directory. It reads names, and a few bytes where a name says too little.
func Look(dir string) (*Survey, error) {
	s := &Survey{Dir: dir}
	if err := s.read(); err != nil {
		return nil, err
	}
	s.sort()
	for _, f := range families {
		s.choose(f)
		if s.Choice != "" || s.several {
			break
		}
	}
	s.Candidates = s.candidates()
	if s.Pipeline = s.has("model_index.json") && s.components(); s.Pipeline {
		s.Choice, s.numbered, s.several = "", nil, true
	}
	return s, nil
}

// read parts files from directories. Links are followed; one whose target is missing is a file.
func (s *Survey) read() error {
	f, err := os.Open(s.Dir)
	if err != nil {
		return err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, e := range entries {
		typ, name := e.Type(), e.Name()
		if typ&os.ModeSymlink != 0 {
			typ = 0
			if st, err := os.Stat(filepath.Join(s.Dir, name)); err == nil {
				typ = st.Mode().Type()
			}
		}
		switch {
		case strings.HasPrefix(name, "."):
			s.hidden = append(s.hidden, name)
		case typ.IsDir():
			s.Dirs = append(s.Dirs, name)
		case typ.IsRegular():
			s.files = append(s.files, name)
		}
	}
	return nil
}

func (s *Survey) sort() {
	slices.SortFunc(s.files, naturally)
	slices.SortFunc(s.Dirs, naturally)
}

func (s *Survey) has(name string) bool { return slices.Contains(s.files, name) }

// names is what is there, for a message.
func (s *Survey) names() []string {
	all := slices.Clone(s.files)
	for _, d := range s.Dirs {
		all = append(all, d+"/")
	}
	return append(all, s.hidden...)
}

// Rest is the files that belong to no candidate.
func (s *Survey) Rest() []string {
	return slices.DeleteFunc(slices.Clone(s.files), func(name string) bool {
		return isIndex(name) || familyOf(name) != nil && !(familyOf(name) == torch && s.foreign(name))
	})
}

// known is the fault of a directory of a kind that is not read. Torch's extensions are in many of
// those, so that several files of them are no reason to ask for one.
func (s *Survey) known() error {
	if s.Pipeline || slices.ContainsFunc(s.Candidates, func(name string) bool { return familyOf(name) != torch }) {
		return nil
	}
	return detect.Directory(s.names())
}

// weights lists the files of a family that may be a model's.
func (s *Survey) weights(f *family) []string {
	var out []string
	for _, name := range s.files {
		if familyOf(name) == f && !(f == torch && s.foreign(name)) {
			out = append(out, name)
		}
	}
	return out
}

// foreign tells a torch extension that means something else: a trainer's state, or the raw
// tensors that an ONNX file beside it names.
func (s *Survey) foreign(name string) bool {
	if isTrainerState(name) {
		return true
	}
	hasONNX := slices.ContainsFunc(s.files, func(n string) bool { return strings.EqualFold(filepath.Ext(n), ".onnx") })
	return hasONNX && !torchMagic(filepath.Join(s.Dir, name))
}

// torchMagic tells a zip archive or a pickle by its first bytes.
func torchMagic(path string) bool {
	f, _, err := disk.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err != nil {
		return false
	}
	return bytes.Equal(head, []byte("PK\x03\x04")) || head[0] == 0x80
}

// choose finds the checkpoint of a family by the order that loaders have: an index, the standard
// name, one complete numbered set, the only file.
func (s *Survey) choose(f *family) {
	if indexes := s.indexes(f); len(indexes) > 0 {
		s.pick(f, indexes, indexOf)
		return
	}
	files := s.weights(f)
	for _, stem := range f.stems {
		for _, ext := range f.exts {
			if slices.Contains(files, stem+ext) {
				s.Choice = stem + ext
				return
			}
		}
	}
	sets, single := group(files)
	var complete []*numberedSet
	for _, g := range sets {
		if g.complete() {
			complete = append(complete, g)
		}
	}
	switch {
	case len(complete) > 1 || len(complete) == 1 && (f.index || len(sets)+len(single) == 1):
		s.pickSet(f, complete)
	case len(sets)+len(single) > 1:
		s.several = true
	case len(sets) == 1:
		s.pickSet(f, sets)
	case len(single) == 1:
		s.Choice = single[0]
	}
}

// pick takes the only one of some names, or the one that has a standard stem.
func (s *Survey) pick(f *family, names []string, file func(string) string) {
	s.several = true
	if len(names) == 1 {
		s.Choice, s.several = names[0], false
		return
	}
	for _, name := range names {
		base := file(name)
		if !slices.Contains(f.stems, strings.TrimSuffix(base, filepath.Ext(base))) || variantIndex(name) {
			continue
		}
		if s.Choice != "" {
			s.Choice = ""
			return
		}
		s.Choice = name
	}
	s.several = s.Choice == ""
}

// variantIndex tells model.safetensors.index.fp16.json.
func variantIndex(name string) bool { return isIndex(name) && !strings.HasSuffix(name, ".index.json") }

func (s *Survey) pickSet(f *family, sets []*numberedSet) {
	byName := map[string]*numberedSet{}
	var names []string
	for _, g := range sets {
		byName[g.first()] = g
		names = append(names, g.first())
	}
	s.pick(f, names, func(first string) string { return byName[first].name() })
	s.numbered = byName[s.Choice]
}

func (s *Survey) indexes(f *family) []string {
	if !f.index {
		return nil
	}
	var out []string
	for _, name := range s.files {
		if base := indexOf(name); base != "" && familyOf(base) == f {
			out = append(out, name)
		}
	}
	return out
}

// indexesFor lists the indexes that may name a file.
func (s *Survey) indexesFor(name string) []string {
	f := familyOf(name)
	if f == nil {
		return nil
	}
	return s.indexes(f)
}

// groupOf is the numbered set that a file is of.
func (s *Survey) groupOf(name string) *numberedSet {
	if _, ok := parsePart(name); !ok || Slice(name) {
		return nil
	}
	names := s.files
	if !s.has(name) {
		names = append(slices.Clone(names), name)
	}
	sets, _ := group(names)
	for _, g := range sets {
		if g.has(name) {
			return g
		}
	}
	return nil
}

// candidates lists each index, each numbered set by its first part unless an index of the same
// stem stands for it, and each lone file.
func (s *Survey) candidates() []string {
	var out []string
	for _, f := range families {
		indexes := s.indexes(f)
		out = append(out, indexes...)
		sets, single := group(s.weights(f))
		for _, g := range sets {
			if !slices.ContainsFunc(indexes, g.namedBy) {
				out = append(out, g.first())
			}
		}
		out = append(out, single...)
	}
	slices.SortStableFunc(out, naturally)
	return out
}

// namedBy tells by names alone whether an index is this set's.
func (g *numberedSet) namedBy(index string) bool {
	base := indexOf(index)
	stem := strings.TrimSuffix(base, filepath.Ext(base))
	if i := strings.LastIndex(index, ".index."); i >= 0 && variantIndex(index) {
		stem += "." + strings.TrimSuffix(index[i+len(".index."):], ".json")
	}
	return stem == g.modelStem()
}

// PartsFor lists the parts of numbered sets for which an index stands by its name. It may name others.
func (s *Survey) PartsFor(index string) (names []string) {
	f := familyOf(indexOf(index))
	if f == nil {
		return nil
	}
	sets, _ := group(s.weights(f))
	for _, g := range sets {
		if g.namedBy(index) {
			names = slices.AppendSeq(names, maps.Values(g.parts))
		}
	}
	slices.SortFunc(names, naturally)
	return names
}

// components keeps the directories that hold weights; false when none does.
func (s *Survey) components() bool {
	var with []string
	for _, d := range s.Dirs {
		sub := &Survey{Dir: filepath.Join(s.Dir, d)} // its names alone: links may lead in circles
		if err := sub.read(); err == nil && len(sub.candidates()) > 0 {
			with = append(with, d)
		}
	}
	if len(with) == 0 {
		return false
	}
	s.Dirs = with
	return true
}
