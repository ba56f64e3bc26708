//go:build linux

package cli

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestHelperPageHasEveryOption(t *testing.T) {
	mount, _, err := testRoot().Find([]string{"mount"})
	if err != nil {
		t.Fatal(err)
	}
	page := plain(helperPage(mount))
	mount.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		option := strings.ReplaceAll(f.Name, "-", "_")
		if lookupOption(mount.Flags(), f.Name) != nil && f.Name != "foreground" && !strings.Contains(page, "\n"+option) {
			t.Errorf("mount.weightfs.8 lacks %s", option)
		}
	})
	for _, name := range append(ignored, "rw") {
		if option := strings.ReplaceAll(name, "-", "_"); !strings.Contains(page, option) {
			t.Errorf("mount.weightfs.8 lacks %s", option)
		}
	}
}
