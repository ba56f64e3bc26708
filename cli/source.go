package cli

import (
	"cmp"
	"errors"

	"github.com/spf13/cobra"

	"weightfs/cachedir"
	"weightfs/format"
	"weightfs/store"
)

// openFlags are the flags of every verb that opens a checkpoint.
type openFlags struct {
	opt     format.Options
	noIndex bool
	opened  func(*format.Checkpoint) // told of each; may be nil
}

func (f *openFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.opt.Lenient, "lenient", false, "accept faults that are harmless for reading (gaps, bytes after the last tensor), with a warning")
	addSelection(c.Flags(), &f.opt)
	c.Flags().BoolVar(&f.noIndex, "no-index", false, "neither use nor keep an index of the checkpoint in the cache directory")
	c.Flags().BoolVar(&f.opt.Partial, "partial", false, "accept a set that lacks shards, with a warning for each")
}

// resolve finds what a SOURCE names.
func resolve(source string) (store.Place, error) {
	place, err := store.Resolve(source, store.System())
	if missing, ok := errors.AsType[*store.NotFoundError](err); ok && !store.HasPrefix(source) {
		missing.Hint = cmp.Or(pathMeant(source), missing.Hint)
	}
	if err == nil && place.Blobs == nil {
		err = refuseMounted(place.Path)
	}
	return place, err
}

// open opens the checkpoint that a SOURCE names.
func (f *openFlags) open(source string) (*format.Checkpoint, error) {
	if source == "" {
		return nil, failf(exitNoSource, "SOURCE is empty")
	}
	place, err := resolve(source)
	if err != nil {
		return nil, err
	}
	c, err := f.openPlace(place)
	if err == nil && c.Len() == 0 && (f.opt.Include != nil || f.opt.Exclude != nil) {
		c.Close()
		return nil, failf(exitNoTensor, "%s: no tensor is left by --include and --exclude", source)
	}
	return c, err
}

func (f *openFlags) openPlace(place store.Place) (*format.Checkpoint, error) {
	opt := f.opt
	if dir, err := cachedir.Dir(); err == nil {
		opt.UnpackDir, opt.DigestDir = dir, dir
		if !f.noIndex {
			opt.IndexDir = dir
		}
	}
	c, err := place.Open(opt)
	if err == nil && f.opened != nil {
		f.opened(c)
	}
	return c, err
}

// withCheckpoint opens the first argument for a verb that only reads.
func (f *openFlags) withCheckpoint(run func(c *format.Checkpoint, args []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		c, err := f.open(args[0])
		if err != nil {
			return err
		}
		defer c.Close()
		defer c.Keep()
		return run(c, args[1:])
	}
}
