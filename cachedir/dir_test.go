package cachedir

import (
	"os"
	"testing"
)

func TestDir(t *testing.T) {
	fallback := "/home/me/.cache/weightfs"
	if os.Geteuid() == 0 {
		fallback = "/var/cache/weightfs"
	}
	for _, test := range []struct{ name, xdg, systemd, want string }{
		{"XDG", "/x", "/s", "/x/weightfs"},
		{"a unit's", "", "/s", "/s"},
		{"a unit's first", "", "/s:/t", "/s"},
		{"relative", "x", "s", fallback},
		{"default", "", "", fallback},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("HOME", "/home/me")
			t.Setenv("XDG_CACHE_HOME", test.xdg)
			t.Setenv("CACHE_DIRECTORY", test.systemd)
			got, err := Dir()
			if err != nil || got != test.want {
				t.Errorf("Dir() = %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestNoHome(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root has /var/cache")
	}
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "CACHE_DIRECTORY"} {
		t.Setenv(name, "")
	}
	if dir, err := Dir(); err == nil {
		t.Errorf("Dir() = %q without a home", dir)
	}
}
