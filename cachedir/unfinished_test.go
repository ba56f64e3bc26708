//go:build unix

package cachedir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		all = append(all, e.Name())
	}
	return all
}

// A server that ended while it wrote an index once left half of it in the cache for good.
func TestKilledWriterLeavesNothingForGood(t *testing.T) {
	if dir := os.Getenv("CACHEDIR_TEST_WRITER"); dir != "" {
		Write(filepath.Join(dir, "x.index"), func(w io.Writer) error {
			fmt.Println("writing")
			_, err := io.Copy(w, os.Stdin)
			return err
		})
		return
	}
	dir := t.TempDir()
	writer := exec.Command(os.Args[0], "-test.run=^TestKilledWriterLeavesNothingForGood$")
	writer.Env = append(os.Environ(), "CACHEDIR_TEST_WRITER="+dir)
	out, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := writer.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	defer writer.Wait()
	defer writer.Process.Kill()
	if _, err := io.ReadFull(out, make([]byte, len("writing"))); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "y.index")
	if err := Write(other, text("y")); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); len(got) != 2 {
		t.Fatalf("%v: the file of a writer that lives was removed", got)
	}
	writer.Process.Kill()
	writer.Wait()
	if err := Write(other, text("y")); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"y.index"}) {
		t.Errorf("left behind: %v", got)
	}
}

func TestAbandonRemovesWhatIsUnfinished(t *testing.T) {
	dir := t.TempDir()
	err := Write(filepath.Join(dir, "x.index"), func(io.Writer) error {
		Abandon()
		return nil
	})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("written all the same: %v", err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestSweepTouchesNothingElse(t *testing.T) {
	dir := t.TempDir()
	theirs := []string{".new-.index", ".new-1.txt", ".new-a1.index", "new-1.index", ".new-1"}
	for _, name := range append(theirs, ".new-12.index", ".new-3.digest") {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".new-7.index"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, ".new-1"), filepath.Join(dir, ".new-8.index")); err != nil {
		t.Fatal(err)
	}
	sweep(dir)
	want := append(theirs, ".new-7.index", ".new-8.index")
	slices.Sort(want)
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
}

// A file that is being written may be the oldest.
func TestTrimLeavesWhatIsBeingWritten(t *testing.T) {
	dir := t.TempDir()
	err := Write(filepath.Join(dir, "x.index"), func(w io.Writer) error {
		err := text("x")(w)
		trim(dir, "", 0)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWritersSideBySide(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 20 {
				if err := Write(filepath.Join(dir, fmt.Sprintf("%d.index", i)), text("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if got := names(t, dir); len(got) != 8 {
		t.Errorf("left %v", got)
	}
}
