package cli

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func testRoot() *cobra.Command { return (&app{out: io.Discard, err: io.Discard}).root() }

// plain undoes what roff does to a word.
func plain(page []byte) string {
	return regexp.MustCompile(`\\f[BIR]`).ReplaceAllString(strings.ReplaceAll(string(page), `\-`, "-"), "")
}

func TestManHasEveryFlag(t *testing.T) {
	root := testRoot()
	pages := manPages(root)
	if _, ok := pages["weightfs-man.1"]; ok {
		t.Error("a hidden verb has a page")
	}
	for _, c := range verbs(root) {
		page := plain(pages["weightfs-"+c.Name()+".1"])
		if !strings.Contains(plain(pages["weightfs.1"]), usageLine(c)) {
			t.Errorf("weightfs.1 lacks %q", usageLine(c))
		}
		c.InheritedFlags() // adds the flags of the program
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !strings.Contains(page, "--"+f.Name) {
				t.Errorf("weightfs-%s.1 lacks --%s", c.Name(), f.Name)
			}
			if f.Shorthand != "" && f.Name != "help" && !strings.Contains(page, "-"+f.Shorthand+", ") {
				t.Errorf("weightfs-%s.1 lacks -%s", c.Name(), f.Shorthand)
			}
		})
	}
}

func TestManHasEveryExitCode(t *testing.T) {
	page := plain(manPages(testRoot())["weightfs.1"])
	for _, code := range exitConstants(t) {
		if !strings.Contains(page, fmt.Sprintf("\n%2d  ", code)) {
			t.Errorf("weightfs.1 lacks exit code %d", code)
		}
	}
}

// exitConstants are the numbers of exit.go.
func exitConstants(t *testing.T) []int {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "exit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []int
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "exit") || len(spec.Values) != 1 {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
			code, err := strconv.Atoi(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, code)
		}
		return true
	})
	if len(codes) < 15 {
		t.Fatalf("exit.go has %d codes", len(codes))
	}
	return codes
}

// What the program reads of its environment is found in the source.
func TestManHasEveryVariable(t *testing.T) {
	page := plain(manPages(testRoot())["weightfs.1"])
	read := regexp.MustCompile(`(?:Getenv|LookupEnv|e\.dir)\("([A-Z_]+)"\)`)
	err := filepath.WalkDir("..", func(path string, d iofs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range read.FindAllSubmatch(source, -1) {
			if !strings.Contains(page, string(m[1])) {
				t.Errorf("weightfs.1 lacks %s of %s", m[1], path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A paragraph is filled or stands as it is; one that is half of each would be spoilt.
func TestHelpTextsAreParagraphs(t *testing.T) {
	root := testRoot()
	for _, c := range append(root.Commands(), root) {
		for _, paragraph := range strings.Split(c.Long, "\n\n") {
			lines := strings.Split(paragraph, "\n")
			for _, line := range lines {
				if strings.HasPrefix(line, "  ") != strings.HasPrefix(lines[0], "  ") {
					t.Errorf("help of %s: %q in a paragraph that begins %q", c.Name(), line, lines[0])
				}
			}
		}
	}
}

func TestManIsCleanRoff(t *testing.T) {
	Date = "2026-11-29"
	defer func() { Date = "" }()
	dir := t.TempDir()
	root := testRoot()
	root.SetArgs([]string{"man", dir})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.[18]"))
	if err != nil || len(pages) < 10 {
		t.Fatal(pages, err)
	}
	for checker, flags := range map[string][]string{"mandoc": {"-Tlint", "-Wwarning"}, "groff": {"-man", "-ww", "-z"}} {
		if _, err := exec.LookPath(checker); err != nil {
			continue
		}
		if out, err := exec.Command(checker, append(flags, pages...)...).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", checker, err, out)
		}
	}
}
