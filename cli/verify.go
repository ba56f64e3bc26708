package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weightfs/format"
	"weightfs/format/set"
	"weightfs/format/tensor"
	"weightfs/store"
)

func (a *app) verify() *cobra.Command {
	v := &verifying{app: a}
	c := &cobra.Command{
		Use:        "verify SOURCE...",
		SuggestFor: []string{"check", "validate"},
		Short:      "Check checkpoints: structure, hashes, NaN",
		Long: `Check checkpoints: the structure of every file, those faults too that --lenient would accept, and
that every byte range can be read. Of a directory all checkpoints in it and below it are checked,
with --sums only the one that it is.

  --hash       read everything, and compare files that are named by their SHA-256 (in the caches of the
               hub and of Ollama) with their names, all with what an earlier --hash read, unless they
               changed since, which a warning says, and what an .npz holds with its CRC-32
  --sums FILE  compare with what sha256sum wrote of the files, those beside the weights too, or with a
               SHA256SUMS of the tree
  --nan        look for NaN and infinities

Each fault is a line; the exit code is 1 when there is one.`,
		Args: between(1, 0, "at least one SOURCE"),
		RunE: func(_ *cobra.Command, args []string) error { return v.run(args) },
	}
	c.Flags().BoolVar(&v.hash, "hash", false, "read everything and compare hashes that are known")
	c.Flags().StringVar(&v.sumsPath, "sums", "", "compare with the SHA-256 in `FILE`, as sha256sum writes them")
	c.Flags().BoolVar(&v.nan, "nan", false, "look for NaN and infinities")
	return c
}

// A verifying is one call of verify.
type verifying struct {
	*app
	hash, nan bool
	sumsPath  string
	sums      sumsFile
	reports   []*report
	seen      map[string]bool // parts of files that are read already
}

func (v *verifying) run(sources []string) error {
	var err error
	if v.sumsPath != "" {
		if v.sums, err = readSumsFile(v.sumsPath); err != nil {
			return err
		}
	}
	targets := slices.Concat(mapEach(sources, v.findAll)...)
	if v.sums != nil && len(targets) != 1 {
		return usageError("--sums takes one checkpoint, not %d", len(targets))
	}
	for i, t := range targets {
		r := &report{source: t.name}
		v.reports = append(v.reports, r)
		label := t.name
		if len(targets) > 1 {
			label = fmt.Sprintf("%d/%d %s", i+1, len(targets), t.name)
		}
		if r.trouble = t.err; r.trouble == nil {
			r.trouble = v.check(r, t, label)
		}
		if r.trouble != nil {
			v.report(r.trouble)
		}
	}
	return v.answer()
}

func mapEach[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}

// A target is a checkpoint to look at, or why it is none.
type target struct {
	name   string
	place  store.Place
	err    error
	walked bool     // what lies beside it is a target too, or left
	left   []string // what is not looked at
}

// findAll gives all checkpoints that a source is or holds.
func (v *verifying) findAll(source string) []target {
	place, err := resolve(source)
	if err != nil {
		return []target{{name: source, err: err}}
	}
	_, err = place.Find(set.Options{Partial: true})
	_, several := errors.AsType[*set.SeveralError](err)
	if _, none := errors.AsType[*set.NoneError](err); !several && !none {
		return v.withOthers(target{name: source, place: place}) // another fault is found again
	}
	library, lerr := store.NewLibrary(place.Path, set.Options{}, nil)
	if lerr != nil {
		return []target{{name: source, err: err}}
	}
	var list []target
	library.Walk(func(f store.Found) {
		if t := targetOf(source, f); f.Err == nil {
			list = append(list, v.withOthers(t)...)
		} else {
			list = append(list, t)
		}
	})
	return list
}

// withOthers adds to a checkpoint that is a directory those that it holds besides. --sums is about one, and
// compares what lies beside that.
func (v *verifying) withOthers(t target) []target {
	if st, err := os.Stat(t.place.Path); err == nil && st.IsDir() {
		t.walked = true
	}
	var others []target
	store.WalkOthers(t.place, func(f store.Found) {
		_, summed := v.sums[f.Name]
		switch {
		case v.sums == nil && !bare(f):
			others = append(others, targetOf(t.name, f))
		case !summed:
			t.left = append(t.left, f.Name)
		}
	})
	return append([]target{t}, others...)
}

// bare tells an index of which no file is there: beside the weights of a model in one format a download
// leaves the index of those in another.
func bare(f store.Found) bool {
	_, err := f.Place.Find(set.Options{Partial: true})
	missing, ok := errors.AsType[*set.IncompleteError](err)
	return ok && !missing.Partial && missing.Index == filepath.Base(f.Place.Path)
}

func targetOf(source string, f store.Found) target {
	return target{name: strings.TrimSuffix(source, "/") + "/" + f.Name, place: f.Place, err: f.Err, walked: true}
}

// check looks at one checkpoint. Faults go into the report; the error is why it cannot be looked at.
func (v *verifying) check(r *report, t target, label string) error {
	s, missing, err := v.find(r, t.place)
	if err != nil || s == nil {
		return err
	}
	rest := slices.Concat(t.left, unnamed(s, t))
	if len(rest) > 0 {
		r.warnings = append(r.warnings, "not checked, as no part of it: "+set.Enumerate(rest, 10)+" (name them to check them)")
	}
	for _, err := range format.Check(s) {
		if err := v.faultOr(r, err); err != nil {
			return err
		}
	}
	c, err := v.open(t.place, missing != nil) // a file that vanished since is no mere warning
	if err != nil {
		if r.knows(err.Error()) {
			return nil
		}
		return v.faultOr(r, err)
	}
	defer c.Close()
	r.format, r.tensors = c.Format, c.Len()
	for _, w := range c.Warnings {
		if t.walked && strings.HasPrefix(w, set.LeftOut) {
			continue // they are checked, or named already
		}
		if !r.knows(w) && (missing == nil || !strings.Contains(missing.Error(), w)) {
			r.warnings = append(r.warnings, w)
		}
	}
	v.read(r, c, s.Dir, label)
	return nil
}

// unnamed are the files that look like parts of a checkpoint, and its index does not name.
func unnamed(s *set.Set, t target) []string {
	look, err := set.Look(s.Dir)
	if err != nil || !t.walked || s.Index == "" {
		return nil
	}
	return slices.DeleteFunc(look.PartsFor(s.Index), func(name string) bool {
		return slices.Contains(s.Files, name) || slices.Contains(s.Missing, name)
	})
}

func (v *verifying) open(p store.Place, partial bool) (*format.Checkpoint, error) {
	f := openFlags{opt: format.Options{Lenient: true, Partial: partial}, noIndex: true}
	return f.openPlace(p)
}

// find gives the files that are there, none after a fault, and reports those that are not.
func (v *verifying) find(r *report, p store.Place) (*set.Set, *set.IncompleteError, error) {
	s, err := p.Find(set.Options{})
	missing, ok := errors.AsType[*set.IncompleteError](err)
	if !ok {
		if err != nil {
			return nil, nil, v.faultOr(r, err)
		}
		return s, nil, nil
	}
	for _, a := range missing.Missing {
		path := filepath.Join(missing.Dir, filepath.FromSlash(a.Name))
		v.fault(r, &tensor.FormatError{File: path, Off: -1, Msg: "missing: " + a.String(), Err: set.ErrNone})
	}
	if s, err = p.Find(set.Options{Partial: true}); err != nil {
		return nil, missing, nil
	}
	return s, missing, nil
}

// faultOr reports an error that is a fault of the checkpoint, and returns any other.
func (v *verifying) faultOr(r *report, err error) error {
	fault, ok := errors.AsType[*tensor.FormatError](err)
	if !ok {
		return err
	}
	v.fault(r, fault)
	return nil
}
