package cachedir

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
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

func TestTrim(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"old.index", "older.digest", "new.digest", "theirs"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, make([]byte, 10), 0o600); err != nil {
			t.Fatal(err)
		}
		age := time.Now().Add(-time.Hour * time.Duration([]int{2, 3, 1, 9}[i]))
		if err := os.Chtimes(path, age, age); err != nil {
			t.Fatal(err)
		}
	}
	left := func() (names []string) {
		list, _ := os.ReadDir(dir)
		for _, e := range list {
			names = append(names, e.Name())
		}
		return names
	}
	trim(dir, "", 30)
	if got := left(); len(got) != 4 {
		t.Errorf("trimmed to %v within the limit", got)
	}
	trim(dir, filepath.Join(dir, "older.digest"), 20)
	if got := left(); !slices.Equal(got, []string{"new.digest", "older.digest", "theirs"}) {
		t.Errorf("left %v, want the newest and the one just written", got)
	}
}
