package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version and Date are set by the release script (-ldflags -X).
var (
	Version = "0.1.0-dev"
	Date    = ""
)

func version() string {
	fuse := "go-fuse"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/hanwen/go-fuse/v2" {
				fuse += " " + m.Version
			}
		}
	}
	s := fmt.Sprintf("weightfs %s; %s; ", Version, fuse)
	if Date != "" {
		s += Date + " "
	}
	return s + fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
