//go:build linux

package faults

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// One of many checkpoints changes while files of all are read: what is open goes on, what is opened
// later is of the new state, and the others notice nothing.
func TestOneOfManyChanges(t *testing.T) {
	dir := t.TempDir()
	var models []*checkpoint
	for _, name := range []string{"changed", "left"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		models = append(models, newCheckpoint(t, filepath.Join(dir, name)))
	}
	changed := models[0]
	paths := slices.Concat(views("a"), spanning[:1])
	old := contents(t, changed.dir, paths...)
	s := mount(t, dir, "--many")
	var list []*reader
	for _, name := range []string{"changed", "left"} {
		for _, path := range paths {
			list = append(list, openReader(t, s.at(name+"/"+path), old[path]))
		}
	}
	crowd := keepReading(list)
	crowd.reading(t, 100)

	must(t, replace(changed.a, shard("a", 1)))
	current := contents(t, changed.dir, paths...)
	for _, path := range paths {
		followed(t, s.at("changed/"+path), old[path], current[path])
		wholeFile(t, s.at("left/"+path), old[path])
	}

	must(t, os.Truncate(changed.b, 100))
	if !eventually(func() bool {
		b, err := os.ReadFile(s.at("changed/ERROR.txt"))
		return err == nil && strings.Contains(string(b), filepath.Base(changed.b))
	}) {
		t.Error("a checkpoint that is broken now does not say so")
	}
	crowd.reading(t, 100)
	must(t, os.RemoveAll(changed.dir))
	if !eventually(func() bool { _, err := os.Stat(s.at("changed")); return errors.Is(err, unix.ENOENT) }) {
		t.Error("a checkpoint that is gone is still there")
	}
	wholeFile(t, s.at("left/"+paths[0]), old[paths[0]])
	crowd.reading(t, 100)
	if failed := crowd.end(t, unix.EIO); failed[unix.EIO] > 1 {
		t.Errorf("readers got %v", failed) // of the file that spans both shards alone
	}
	for _, r := range list {
		r.close()
	}
	s.umount()
}

// followed: the file at a path is the old one, cannot be opened, and is the new one soon.
func followed(t *testing.T, path string, old, current []byte) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		b, err := os.ReadFile(path)
		switch {
		case err == nil && slices.Equal(b, current):
			return
		case err == nil && !slices.Equal(b, old):
			t.Fatalf("%s is neither old nor new", path)
		case err != nil && !errors.Is(err, unix.ESTALE) && !errors.Is(err, unix.ENOENT):
			t.Fatal(err)
		}
	}
	t.Fatalf("%s does not become the new one", path)
}
