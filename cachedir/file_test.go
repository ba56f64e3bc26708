package cachedir

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWriteReplacesWholeFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	path := filepath.Join(dir, "x"+IndexExt)
	write := func(text string, failure error) error {
		return Write(path, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return errors.Join(err, failure)
		})
	}
	full := errors.New("the disk is full")
	for _, step := range []struct {
		text    string
		failure error
		want    string
	}{{"first", nil, "first"}, {"second", nil, "second"}, {"half of the thi", full, "second"}} {
		if err := write(step.text, step.failure); !errors.Is(err, step.failure) {
			t.Errorf("%s: %v", step.text, err)
		}
		if got, err := os.ReadFile(path); string(got) != step.want {
			t.Errorf("after %s: %q, %v", step.text, got, err)
		}
	}
	if list, err := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("left behind: %v, %v", list, err)
	}
}

func TestUsedIsNotTheOldest(t *testing.T) {
	dir := t.TempDir()
	past := time.Now().Add(-time.Hour)
	for _, name := range []string{"a.index", "b.index"} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 10), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	Used(filepath.Join(dir, "a.index"))
	trim(dir, "", 10)
	if _, err := os.Stat(filepath.Join(dir, "a.index")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "b.index")); err == nil {
		t.Error("the other one is still there")
	}
}
