//go:build linux

package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes that mount(8) wants of its helpers.
const (
	helperUsage   = 1
	helperFailure = 32
)

// mountHelper is the program called as mount.weightfs or mount.fuse.weightfs, by mount(8):
// SOURCE MOUNTPOINT [-sfnv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE].
func (a *app) mountHelper(args []string) int {
	switch a.report(a.runHelper(args[1:])) {
	case exitDone:
		return exitDone
	case exitUsage:
		return helperUsage
	}
	return helperFailure
}

func (a *app) runHelper(args []string) error {
	m := &mounting{app: a}
	c := &cobra.Command{}
	m.add(c)
	fl := pflag.NewFlagSet("mount.weightfs", pflag.ContinueOnError)
	fl.Usage = func() {}
	fl.StringArrayVarP(&m.options, "options", "o", nil, "")
	fl.StringP("types", "t", "", "")
	fl.BoolP("no-mtab", "n", false, "") // there is none
	sloppy := fl.BoolP("sloppy", "s", false, "")
	fake := fl.BoolP("fake", "f", false, "")
	verbose := fl.BoolP("verbose", "v", false, "")
	namespace := fl.StringP("namespace", "N", "", "")
	switch err := fl.Parse(args); {
	case err != nil && !errors.Is(err, pflag.ErrHelp):
		return usageError("%v", err)
	case err != nil, fl.NArg() != 2:
		return usageError("mount.weightfs SOURCE MOUNTPOINT [-sfnv] [-o OPTIONS]")
	case *namespace != "":
		return usageError("-N %s: not supported (nsenter mounts in another namespace)", *namespace)
	}
	a.quiet = !*verbose
	words := mountWords{system: true, sloppy: *sloppy}
	if *fake {
		return m.apply(c.Flags(), words)
	}
	return m.run(c.Flags(), fl.Args(), words)
}
