package store

import (
	"os/exec"
	"strings"
	"testing"

	"weightfs/format"
)

func TestReadmeNamesTheFirstCheckpoint(t *testing.T) {
	dir := tree(t, "a/none.txt", "b c/d/x.gguf=GGUF", "b c/y.gguf", "b c/z.gguf")
	l := library(t, dir, &opener{})
	text := read(t, at(t, l, readmeName))
	for _, line := range []string{dir, "  ls 'b c/d'", "  cat 'b c/d'/README.txt", "  ls */*/ERROR.txt", "  weightfs verify " + dir} {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	size := at(t, l, readmeName).Stat().Size
	grow(t, dir, "a/a.gguf")
	if again := read(t, at(t, l, readmeName)); again != text || size != int64(len(text)) {
		t.Errorf("it changed, or has not %d bytes:\n%s", size, again)
	}
	if _, err := l.Root().Lookup("readme.txt"); err == nil {
		t.Error("another name is there")
	}
	if _, err := format.Lookup(l.Root(), "b c/"+readmeName); err == nil {
		t.Error("there is one below the top")
	}
}

// What is called so on the disk is not hidden.
func TestReadmeIsNoCheckpointsName(t *testing.T) {
	dir := tree(t, readmeName+"/x.safetensors", "b.gguf")
	l := library(t, dir, &opener{})
	if got := walk(t, l); len(got) != 2 || got[0] != readmeName {
		t.Errorf("%q", got)
	}
}

// The commands are words of a shell whatever the checkpoint is called.
func TestReadmeQuotes(t *testing.T) {
	dir := tree(t, "it's/x.safetensors=a")
	text := string(readme(dir, "it's"))
	_, commands, _ := strings.Cut(text, "From this directory:\n")
	line, _, _ := strings.Cut(strings.TrimSpace(commands), "\n")
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = dir
	if out, err := cmd.Output(); err != nil || string(out) != "x.safetensors\n" {
		t.Errorf("%s: %q, %v", line, out, err)
	}
}
