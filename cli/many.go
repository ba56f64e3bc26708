package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"weightfs/format"
	"weightfs/format/names"
	"weightfs/format/set"
	"weightfs/format/tensor"
	"weightfs/store"
)

// manyFlags are those of the verbs that take a directory of many checkpoints as well as one.
type manyFlags struct {
	openFlags
	many       bool
	restricted bool // to what the mount could reach when it was made
}

func (f *manyFlags) addMany(fl *pflag.FlagSet) {
	fl.BoolVar(&f.many, "many", false, "take a directory for many checkpoints even if it is one: each file and each directory below it")
}

// openAny opens the checkpoint that a SOURCE names or, when it is a directory that has no one
// checkpoint at its own level, the library of all that are in it. A broken checkpoint is an error.
func (f *manyFlags) openAny(source string) (*format.Checkpoint, *store.Library, error) {
	if f.many {
		l, err := f.library(source)
		return nil, l, err
	}
	c, err := f.open(source)
	if !isMany(err) {
		return c, nil, err
	}
	l, lerr := f.library(source)
	if _, none := errors.AsType[*set.NoneError](lerr); none {
		return nil, nil, err // which names what is there
	}
	return nil, l, lerr
}

// notShown tells, by names alone, of checkpoints below a directory that is taken for one.
func notShown(source, flag string) []string {
	place, err := resolve(source)
	if err != nil {
		return nil
	}
	n, all := store.CountBelow(place)
	switch {
	case n == 0:
		return nil
	case !all:
		return []string{fmt.Sprintf("at least %s in directories below are not shown (%s shows all)", plural(n, "checkpoint"), flag)}
	case n == 1:
		return []string{fmt.Sprintf("1 checkpoint in a directory below is not shown (%s shows all)", flag)}
	}
	return []string{fmt.Sprintf("%d checkpoints in directories below are not shown (%s shows all)", n, flag)}
}

// warnNotShown warns of them for a verb that only reads.
func (a *app) warnNotShown(source, flag string) {
	a.warnOf(source, notShown(source, flag))
}

// warnOf prints warnings of a source, of many the first ones.
func (a *app) warnOf(source string, warnings []string) {
	n := min(len(warnings), mostWarnings)
	a.warnAll(source, warnings[:n])
	if n < len(warnings) && !a.quiet {
		fmt.Fprintf(a.err, "warning: %s: %d more (weightfs info has them all)\n", printable(source), len(warnings)-n)
	}
}

func (a *app) warnAll(source string, warnings []string) {
	if a.quiet {
		return
	}
	for _, w := range warnings {
		fmt.Fprintf(a.err, "warning: %s: %s\n", printable(source), oneLine(w))
	}
}

// mostWarnings is how many of a checkpoint's warnings are printed: a set of a thousand files may
// have one for each.
const mostWarnings = 10

func isMany(err error) bool {
	if _, several := errors.AsType[*set.SeveralError](err); several {
		return true
	}
	none, ok := errors.AsType[*set.NoneError](err)
	return ok && none.Known == nil
}

// library surveys a directory of checkpoints, which are opened when they are entered.
func (f *manyFlags) library(source string) (*store.Library, error) {
	dir := source
	if _, err := os.Stat(dir); err != nil {
		place, err := resolve(source)
		if err != nil {
			return nil, err
		}
		dir = place.Path
	} else if err := refuseMounted(dir); err != nil {
		return nil, err
	}
	if st, err := os.Stat(dir); err == nil && !st.IsDir() {
		return nil, usageError("%s: %w, as --many wants it", source, syscall.ENOTDIR)
	}
	return store.NewLibrary(dir, set.Options{Partial: f.opt.Partial}, f.openOne)
}

func (f *manyFlags) openOne(p store.Place, inoBase, gen uint64) (format.Dir, error) {
	one := f.openFlags
	one.opt.InoBase, one.opt.Gen = inoBase, gen
	c, err := one.openPlace(p)
	if errors.Is(err, os.ErrPermission) && f.restricted {
		err = fmt.Errorf("%w (a link out of the mounted directory must be there when it is mounted, without --no-sandbox)", err)
	}
	if err != nil {
		return nil, err
	}
	go c.Keep()
	return c.Root(), nil
}

// lsMany lists the checkpoints of a library.
func (a *app) lsMany(l *store.Library, source string, args []string, long bool) error {
	p, err := names.NewPattern("*")
	if len(args) > 0 {
		p, err = names.NewPattern(args[0])
	}
	if err != nil {
		return usageError("%v", err)
	}
	var list []store.Found
	l.Walk(func(f store.Found) {
		if p.Match(f.Name) {
			list = append(list, f)
		}
	})
	switch {
	case len(list) == 0:
		return failf(exitNoTensor, "%s: no checkpoint %q (weightfs ls lists them)", source, p)
	case a.json:
		return a.manyJSON(source, list)
	}
	a.warnOf(source, l.Warnings())
	return printMany(a.out, list, long)
}

func printMany(out io.Writer, list []store.Found, long bool) error {
	b := bufio.NewWriter(out)
	w := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	if long {
		fmt.Fprintln(w, "NAME\tFILES\tSIZE\tPATH")
	}
	for _, f := range list {
		switch {
		case f.Err != nil:
			unknown := ""
			if long {
				unknown = "-\t-\t"
			}
			fmt.Fprintf(w, "%s\t%s%s\n", printable(f.Name), unknown, oneLine(f.Err.Error()))
		case long:
			fmt.Fprintf(w, "%s\t%s\t%s\n", printable(f.Name), filesOf(f.Place), printable(f.Place.Path))
		default:
			fmt.Fprintln(w, printable(f.Name))
		}
	}
	w.Flush()
	fmt.Fprintln(b, plural(len(list), "checkpoint"))
	return b.Flush()
}

// filesOf is the number and the size of a checkpoint's files, which are not opened.
func filesOf(p store.Place) string {
	s, err := p.Find(set.Options{Partial: true})
	if err != nil {
		return "-\t-"
	}
	var size uint64
	for _, name := range s.Files {
		if st, err := os.Stat(s.Path(name)); err == nil {
			size += uint64(st.Size())
		}
	}
	return fmt.Sprintf("%d\t%s", len(s.Files), sizeText(size))
}

func (a *app) manyJSON(source string, list []store.Found) error {
	found := make([]any, len(list))
	for i, f := range list {
		var fault any
		if f.Err != nil {
			fault = f.Err.Error()
		}
		found[i] = tensor.Object{{Key: "name", Value: f.Name}, {Key: "path", Value: f.Place.Path}, {Key: "error", Value: fault}}
	}
	_, err := fmt.Fprintf(a.out, "%s\n", tensor.AppendJSON(nil, tensor.Object{{Key: "source", Value: source}, {Key: "checkpoints", Value: found}}))
	return err
}
