//go:build !linux

package cli

import "github.com/spf13/cobra"

// Without FUSE in the kernel the verbs of the mount are there to say so.

func (a *app) mount() *cobra.Command {
	return noFUSE("mount SOURCE MOUNTPOINT", "Mount a checkpoint (on Linux)")
}

func (a *app) umount() *cobra.Command {
	return noFUSE("umount MOUNTPOINT... | --all", "Unmount what weightfs mounted (on Linux)")
}

func (a *app) status() *cobra.Command { return noFUSE("status", "List what is mounted (on Linux)") }

func (a *app) twoArguments(root *cobra.Command) {
	root.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		return unknownCommand(root, args[0])
	}
}

func isSource(string) bool { return false }

func (a *app) mountHelper([]string) int { return a.report(noMount) }

var noMount = failf(exitNoFUSE, "mounting needs Linux (weightfs ls, cat and cp read a checkpoint without a mount)")

func noFUSE(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error { return noMount },
	}
}

func helperPage(*cobra.Command) []byte { return nil } // its options are those of a mount

func refuseMounted(string) error { return nil }
