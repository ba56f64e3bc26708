package cli

import (
	"github.com/spf13/cobra"

	"weightfs/format"
)

// openFlags are the flags of every verb that opens a checkpoint.
type openFlags struct{ opt format.Options }

func (f *openFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.opt.Lenient, "lenient", false, "accept faults that are harmless for reading (gaps, bytes after the last tensor), with a warning")
	c.Flags().BoolVar(&f.opt.Partial, "partial", false, "accept a set that lacks shards, with a warning for each")
}

// open opens the checkpoint that a SOURCE names.
func (f *openFlags) open(source string) (*format.Checkpoint, error) {
	return format.Open(source, f.opt)
}

// withCheckpoint opens the first argument for a verb that only reads.
func (f *openFlags) withCheckpoint(run func(c *format.Checkpoint, args []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		c, err := f.open(args[0])
		if err != nil {
			return err
		}
		defer c.Close()
		return run(c, args[1:])
	}
}
