package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/dustin/go-humanize"

	"weightfs/format/tensor"
)

// A report is what was found of one checkpoint.
type report struct {
	source   string
	format   string
	tensors  int
	bytes    int64 // that were read
	warnings []string
	trouble  error // why it could not be checked

	mu      sync.Mutex
	faults  []*tensor.FormatError
	changed []string // warnings of files that are not as they were
	shown   *progress
}

func (v *verifying) fault(r *report, f *tensor.FormatError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, f)
	if !v.json {
		r.shown.print(v.out, oneLine(f.Error()))
	}
}

// warn is for jobs, which run side by side.
func (r *report) warn(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = append(r.changed, text)
}

// knows tells whether a warning has been reported as a fault.
func (r *report) knows(warning string) bool {
	return slices.ContainsFunc(r.faults, func(f *tensor.FormatError) bool { return f.Error() == warning })
}

// sort puts the faults and warnings in the order of the files, whichever core found them first.
func (r *report) sort() {
	slices.Sort(r.changed)
	r.warnings = append(r.warnings, r.changed...)
	slices.SortStableFunc(r.faults, func(a, b *tensor.FormatError) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return int(max(-1, min(1, a.Off-b.Off)))
	})
}

// answer sums up.
func (v *verifying) answer() error {
	faults, faulty, unread, tensors, bytes := 0, 0, 0, 0, int64(0)
	var trouble error
	for _, r := range v.reports {
		faults += len(r.faults)
		if len(r.faults) > 0 {
			faulty++
		}
		tensors += r.tensors
		bytes += r.bytes
		if r.trouble != nil {
			unread++
		}
		if trouble == nil {
			trouble = r.trouble
		}
		for _, w := range r.warnings {
			if !v.json && !v.quiet {
				w = strings.TrimPrefix(w, filepath.Base(r.source)+": ")
				fmt.Fprintf(v.err, "warning: %s: %s\n", printable(r.source), oneLine(w))
			}
		}
	}
	if v.json {
		if err := v.printJSON(faults); err != nil {
			return err
		}
	} else if !v.quiet {
		text := faultsText(faults, faulty, len(v.reports))
		if unread > 0 {
			text += fmt.Sprintf(", %d not read", unread)
		}
		read := sizeText(uint64(bytes)) + " read"
		if v.structureOnly() {
			read = "structure only"
			if faults+unread == 0 {
				text += " (--hash reads the data)"
			}
		}
		if _, err := fmt.Fprintf(v.out, "%s, %s, %s: %s\n", countOf(len(v.reports), "checkpoint"), countOf(tensors, "tensor"), read, text); err != nil {
			return err
		}
	}
	switch {
	case trouble != nil:
		return reported{codeOf(trouble)}
	case faults > 0:
		return noAnswer{}
	}
	return nil
}

func (v *verifying) structureOnly() bool { return !v.hash && !v.nan && v.sums == nil }

func faultsText(faults, faulty, of int) string {
	switch {
	case faults == 0:
		return "no faults"
	case of == 1:
		return countOf(faults, "fault")
	}
	return fmt.Sprintf("%s in %d of them", countOf(faults, "fault"), faulty)
}

func countOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return humanize.Comma(int64(n)) + " " + noun + "s"
}

func (v *verifying) printJSON(faults int) error {
	list := []any{}
	for _, r := range v.reports {
		found, warnings := []any{}, []any{}
		for _, f := range r.faults {
			found = append(found, tensor.Object{
				{Key: "file", Value: orNull(f.File, f.File == "")}, {Key: "tensor", Value: orNull(f.Tensor, f.Tensor == "")},
				{Key: "offset", Value: orNull(f.Off, f.Off < 0)}, {Key: "message", Value: f.Msg},
			})
		}
		for _, w := range r.warnings {
			warnings = append(warnings, w)
		}
		entry := tensor.Object{
			{Key: "source", Value: r.source}, {Key: "format", Value: orNull(r.format, r.format == "")},
			{Key: "tensors", Value: r.tensors}, {Key: "bytes_read", Value: r.bytes},
			{Key: "faults", Value: found}, {Key: "warnings", Value: warnings},
		}
		if r.trouble != nil {
			entry = append(entry, tensor.KV{Key: "error", Value: r.trouble.Error()})
		}
		list = append(list, entry)
	}
	doc := tensor.Object{{Key: "schema", Value: 1}, {Key: "faults", Value: faults}, {Key: "checkpoints", Value: list}}
	_, err := fmt.Fprintf(v.out, "%s\n", tensor.AppendJSON(nil, doc))
	return err
}

// orNull is a value of JSON that may be unknown.
func orNull(value any, unknown bool) any {
	if unknown {
		return nil
	}
	return value
}
