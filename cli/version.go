package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version and Date are set by the release script (-ldflags -X).
var (
	Version = "0.1.0-dev"
	Date    = ""
)

func version() string {
	s := fmt.Sprintf("weightfs %s; ", Version)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/hanwen/go-fuse/v2" { // not where there is no mount
				s += "go-fuse " + m.Version + "; "
			}
		}
	}
	if Date != "" {
		s += Date + " "
	}
	return s + fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// version is what --version prints as well.
func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version",
		Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.out, version())
			return err
		},
	}
}
