// Package packaging has tests of what the packages hold beside the program.
package packaging

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestYAMLParses(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(path string, d iofs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		for decoder := yaml.NewDecoder(f); ; seen++ {
			var doc map[string]any
			err := decoder.Decode(&doc)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil || len(doc) == 0 {
				t.Errorf("%s: %v, %v", path, doc, err)
				return nil
			}
		}
	})
	if err != nil || seen < 4 {
		t.Errorf("%d documents, %v", seen, err)
	}
}

func units(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("systemd/*/*.service")
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	return list
}

func TestUnitsVerify(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here")
	}
	program, err := os.Executable() // stands in for one that is not installed
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range units(t) {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), filepath.Base(unit))
		text = regexp.MustCompile(`/usr/bin/(weightfs|fusermount3)`).ReplaceAllLiteral(text, []byte(program))
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		args := []string{"verify", "--man=no", path}
		if strings.Contains(unit, "/user/") {
			args = append(args, "--user")
		}
		cmd := exec.Command(analyze, args...)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}

// Settings with which systemd gives a service a mount namespace, or keeps it from running what is
// set-user-id: the mount would be seen by the service alone, or not be made.
var harmful = regexp.MustCompile(`(?m)^(Private|Protect|ReadOnly|ReadWrite|Inaccessible|Bind|TemporaryFileSystem|Root(Directory|Image)|MountFlags|NoNewPrivileges|SystemCall|Restrict|LockPersonality|MemoryDenyWriteExecute|DynamicUser)\w*=`)

func TestUnitsLetTheMountBeSeen(t *testing.T) {
	for _, unit := range units(t) {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		if bad := harmful.Find(text); bad != nil {
			t.Errorf("%s: %s", unit, bad)
		}
	}
}
