//go:build linux

package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weightfs/store"
)

// A mounting is one mount, from its flags to its end.
type mounting struct {
	*app
	mountFlags
	source    string
	dir       string // absolute, or the /dev/fd/N of a mount that was made for us
	automount bool   // systemd or autofs waits there for this mount
}

func (a *app) mount() *cobra.Command {
	m := &mounting{app: a}
	c := &cobra.Command{
		Use:   "mount SOURCE MOUNTPOINT",
		Short: "Mount a checkpoint, or many: every tensor a file",
		Long: `Mount a checkpoint. The command returns when the tree can be read; the server goes on in the
background until ` + "`weightfs umount MOUNTPOINT`" + `. The mount is read-only.

A directory that holds many checkpoints (a folder of models, a training run, the cache of the hub, the
store of Ollama) is mounted as a directory of them. Each is opened when it is entered; one that cannot
be opened holds an ERROR.txt. What is added, changed or removed is seen within two seconds.

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
			return usageError("weightfs SOURCE MOUNTPOINT takes two arguments, not %d (weightfs ls SOURCE and weightfs info SOURCE look into one)", len(args))
		}
		return m.run(c.Flags(), args, mountWords{system: true})
	}
}

// isSource tells a source from a mistyped verb: it is there, or has the form of one.
func isSource(word string) bool {
	if store.HasPrefix(word) {
		return true
	}
	found := make(chan bool, 1)
	go func() {
		_, err := store.Resolve(word, store.System())
		found <- !errors.Is(err, store.ErrNotFound)
	}()
	select {
	case ok := <-found:
		return ok
	case <-time.After(probeTime):
		return true // a disk that does not answer is there
	}
}

// run mounts args[0] at args[1]: here, or in a process of its own. Only that one touches the source,
// so that the wait for it has a bound.
func (m *mounting) run(flags *pflag.FlagSet, args []string, words mountWords) error {
	err := m.apply(flags, words)
	if err != nil {
		return err
	}
	m.source = args[0]
	if m.dir, err = absolute(args[1]); err != nil {
		return failf(exitMountPoint, "mount point %w", err)
	}
	if socket := adopt(serverVar); socket != nil {
		return m.keepParent(socket)
	}
	if socket := adopt(keeperVar); socket != nil {
		return m.serve(flags, nil, newKeeperEnd(socket))
	}
	starter := adopt(readyVar)
	switch {
	case starter == nil && !m.foreground:
		return m.start(flags)
	case m.foreground && m.confined():
		return m.keepChild(flags)
	}
	return m.serve(flags, starter, nil)
}
