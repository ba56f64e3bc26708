//go:build linux

package cli

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weightfs/fs"
	"weightfs/store"
)

// A mounting is one mount, from its flags to its end.
type mounting struct {
	*app
	mountFlags
	source string
	dir    string // absolute, or the /dev/fd/N of a mount that was made for us
}

func (a *app) mount() *cobra.Command {
	m := &mounting{app: a}
	c := &cobra.Command{
		Use:   "mount SOURCE MOUNTPOINT",
		Short: "Mount a checkpoint: every tensor a file",
		Long: `Mount a checkpoint. The command returns when the tree can be read; the server goes on in the
background until ` + "`weightfs umount MOUNTPOINT`" + `. The mount is read-only.

Every flag is also an option of -o, with dashes or underscores: -o allow_other,umask=027.`,
		Args: exactly(2, "SOURCE and MOUNTPOINT"),
		RunE: func(c *cobra.Command, args []string) error {
			return m.run(c.Flags(), args, mountWords{})
		},
	}
	m.add(c)
	return c
}

// twoArguments lets the program without a verb mount, as `mount -t fuse.weightfs` calls it.
func (a *app) twoArguments(root *cobra.Command) {
	m := &mounting{app: a}
	m.add(root)
	root.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	root.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return c.Help()
		case !isSource(args[0]):
			return unknownCommand(root, args[0])
		case len(args) != 2:
			return usageError("weightfs SOURCE MOUNTPOINT takes two arguments, not %d", len(args))
		}
		return m.run(c.Flags(), args, mountWords{system: true})
	}
}

// isSource tells a source from a mistyped verb: it is there, or has the form of one.
func isSource(word string) bool {
	if store.HasPrefix(word) {
		return true
	}
	_, err := store.Resolve(word, store.System())
	return !errors.Is(err, store.ErrNotFound)
}

// run mounts args[0] at args[1]: here, or in a process of its own.
func (m *mounting) run(flags *pflag.FlagSet, args []string, words mountWords) error {
	if err := m.apply(flags, words); err != nil {
		return err
	}
	var err error
	if m.source, err = absolute(args[0]); err != nil {
		return err
	}
	if m.dir, err = filepath.Abs(args[1]); err != nil {
		return err
	}
	if starter := starterPipe(); starter != nil {
		return m.serve(starter)
	}
	if m.foreground {
		return m.serve(nil)
	}
	return m.start(flags)
}

// absolute makes a source that is a path absolute: the server leaves the directory it was started in.
func absolute(source string) (string, error) {
	if _, err := os.Lstat(source); err != nil {
		return source, nil
	}
	return filepath.Abs(source)
}

// mountFault gives a failed mount its exit code, and says what works without FUSE.
func mountFault(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNoFUSE):
		return failf(exitNoFUSE, "%s: %w (weightfs ls, cat and cp read a checkpoint without a mount)", dir, err)
	case errors.Is(err, fs.ErrRefused):
		return failf(exitRefused, "%s: %w", dir, err)
	}
	return &exitError{exitMountPoint, err}
}
