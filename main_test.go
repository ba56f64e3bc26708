package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
)

// The comment of main.go is a map: it names every package, and imports lead down in it.
func TestMapOfThePackages(t *testing.T) {
	line := map[string]int{"cli": 0, "faults": 0} // in its text, above the list
	for dir := range packagesOfTheMap(t) {
		line[dir] = len(line)
	}
	seen := map[string]bool{}
	walk := func(file string, d fs.DirEntry, err error) error {
		dir := path.Dir(file)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (file == "scripts" || file == "packaging" || file == "testdata" || strings.HasPrefix(d.Name(), ".") && file != "."):
			return fs.SkipDir
		case path.Ext(file) != ".go" || dir == ".":
			return nil
		}
		if _, ok := line[dir]; !ok && !seen[dir] {
			t.Errorf("main.go does not name the package %s", dir)
		}
		seen[dir] = true
		if strings.HasSuffix(file, "_test.go") {
			return nil
		}
		for _, other := range ownImports(t, file) {
			if line[other] <= line[dir] {
				t.Errorf("%s imports %s, which stands above it in main.go", file, other)
			}
		}
		return nil
	}
	if err := fs.WalkDir(os.DirFS("."), ".", walk); err != nil {
		t.Fatal(err)
	}
	for dir := range line {
		if !seen[dir] {
			t.Errorf("main.go names the package %s, which is not there", dir)
		}
	}
}

// packagesOfTheMap gives the list's first words, from top to bottom.
func packagesOfTheMap(t *testing.T) func(yield func(string) bool) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	comment, _, _ := strings.Cut(string(source), "\npackage main\n")
	return func(yield func(string) bool) {
		for line := range strings.Lines(comment) {
			if entry, ok := strings.CutPrefix(line, "//\t"); ok && !yield(strings.Fields(entry)[0]) {
				return
			}
		}
	}
}

// ownImports are the packages of this module that a file imports.
func ownImports(t *testing.T, file string) (dirs []string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range parsed.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if dir, ok := strings.CutPrefix(name, "weightfs/"); ok {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
