//go:build linux

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every block of README.md is run, in order, in a directory that looks like a clone:
//
//	console        lines that begin with "$ " are commands, those below them what they print
//	python, c, R   a program; one whose first line is a comment with a file name is only written to
//	               that file, for a command below it
//	text           what the program above it prints
//
// In what is printed a line "..." stands for any lines, "…" for any characters, and two spaces or more
// for any number. A block below the comment "<!-- not run: REASON -->" is left alone.

var update = flag.Bool("update", false, "write into README.md what its commands print")

// A block is what stands between two fences.
type block struct {
	lang     string
	from, to int // where the text stands in the file
	text     string
	skipped  bool
}

var fenced = regexp.MustCompile("(?ms)^(<!-- not run: [^\n]*-->\n)?```([[:alpha:]]+)\n(.*?)^```$")

func blocksOf(readme []byte) []block {
	var blocks []block
	for _, at := range fenced.FindAllSubmatchIndex(readme, -1) {
		blocks = append(blocks, block{
			lang: string(readme[at[4]:at[5]]),
			from: at[6], to: at[7],
			text:    string(readme[at[6]:at[7]]),
			skipped: at[2] >= 0,
		})
	}
	return blocks
}

// A clone is the directory that the blocks are run in.
type clone struct {
	dir string
	env []string
}

// newClone links what is in the module, and puts the program and Python on the path.
func newClone(t *testing.T) clone {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	c := clone{dir: t.TempDir()}
	for _, name := range []string{"testdata", "scripts"} {
		must(t, os.Symlink(filepath.Join(root, name), filepath.Join(c.dir, name)))
	}
	path := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if python := os.Getenv("WEIGHTFS_PYTHON"); python != "" {
		path += ":" + filepath.Dir(python)
	}
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	must(t, err)
	c.env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8",
		"XDG_CACHE_HOME="+t.TempDir(), "GOCACHE="+strings.TrimSpace(string(goCache)))
	t.Cleanup(func() { c.run("weightfs umount --lazy mnt another gguf 2>/dev/null; true") })
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run answers what a command prints, its failure in the last line.
func (c clone) run(command string) string {
	cmd := exec.Command("bash", "-c", command)
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = fmt.Appendf(out, "[%v]\n", err)
	}
	return string(out)
}

// interpreters run the programs that stand in blocks of their own.
func interpreter(lang, text string) (string, error) {
	python := os.Getenv("WEIGHTFS_PYTHON")
	if strings.Contains(text, "import torch") || strings.Contains(text, "safetensors.torch") {
		python = os.Getenv("WEIGHTFS_TORCH_PYTHON")
	}
	command := map[string]string{"python": python, "R": "Rscript"}[lang]
	if command == "" {
		return "", errors.New("no Python with the libraries is named in the environment")
	}
	if _, err := exec.LookPath(command); err != nil {
		return "", err
	}
	return map[string]string{"python": command + " -W error - ", "R": command + " - "}[lang], nil
}

var ownFile = regexp.MustCompile(`^(?:#|/\*|//) (\S+\.\w+)`)

func TestReadme(t *testing.T) {
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no FUSE here: ", err)
	}
	fuse.Close()
	readme, err := os.ReadFile("README.md")
	must(t, err)
	c, blocks := newClone(t), blocksOf(readme)
	for i, b := range blocks {
		if b.skipped || b.lang == "text" || b.lang == "json" {
			continue
		}
		t.Run(fmt.Sprintf("line %d", 1+bytes.Count(readme[:b.from], []byte("\n"))), func(t *testing.T) {
			switch m := ownFile.FindStringSubmatch(b.text); {
			case b.lang == "console":
				blocks[i].text = c.session(t, b)
			case m != nil:
				must(t, os.WriteFile(filepath.Join(c.dir, m[1]), []byte(b.text), 0o644))
			case i+1 < len(blocks) && blocks[i+1].lang == "text":
				blocks[i+1].text = c.program(t, b, blocks[i+1].text)
			default:
				c.program(t, b, "")
			}
		})
	}
	if *update {
		must(t, os.WriteFile("README.md", rewritten(readme, blocks), 0o644))
	}
}

// rewritten puts the texts of the blocks where they stood.
func rewritten(readme []byte, blocks []block) []byte {
	for _, b := range slices.Backward(blocks) {
		readme = slices.Concat(readme[:b.from], []byte(b.text), readme[b.to:])
	}
	return readme
}

var command = regexp.MustCompile(`(?m)^\$ (?:.*\\\n> )*.*\n`)

// session runs the commands of a console block and answers the block with what they print now.
func (c clone) session(t *testing.T, b block) string {
	var now strings.Builder
	at := command.FindAllStringIndex(b.text, -1)
	for i, in := range at {
		end := len(b.text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		line, want := b.text[in[0]:in[1]], b.text[in[1]:end]
		typed := strings.ReplaceAll(strings.TrimPrefix(line, "$ "), "\n> ", "\n")
		if tool := missingTool(typed); tool != "" {
			t.Skipf("no %s here", tool)
		}
		now.WriteString(line + compared(t, line, c.run(typed), want))
	}
	return now.String()
}

// missingTool names what a command needs that not every machine has.
func missingTool(typed string) string {
	name, _, _ := strings.Cut(typed, " ")
	if _, err := exec.LookPath(name); err != nil && slices.Contains([]string{"cc", "Rscript"}, name) {
		return name
	}
	if name == "python3" && os.Getenv("WEIGHTFS_PYTHON") == "" {
		return "Python with the libraries"
	}
	return ""
}

func (c clone) program(t *testing.T, b block, want string) string {
	with, err := interpreter(b.lang, b.text)
	if err != nil {
		t.Skip(err)
	}
	return compared(t, b.lang, c.run(with+" <<'END-OF-BLOCK'\n"+b.text+"END-OF-BLOCK\n"), want)
}

// compared answers want where it still holds, and what is printed now where it does not.
func compared(t *testing.T, what, got, want string) string {
	if pattern(want).MatchString(trimmed(got)) {
		return want
	}
	if !*update {
		t.Errorf("%s\nprints\n%s\nREADME.md says\n%s", what, got, want)
	}
	return trimmed(got)
}

var endOfLine = regexp.MustCompile(`(?m)[ \t]+$`)

func trimmed(s string) string { return endOfLine.ReplaceAllString(s, "") }

var columns = regexp.MustCompile(`  +`)

func pattern(want string) *regexp.Regexp {
	var p strings.Builder
	for line := range strings.Lines(trimmed(want)) {
		if line == "...\n" {
			p.WriteString(`(?:.*\n)*`)
			continue
		}
		p.WriteString(columns.ReplaceAllString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*"), " +"))
	}
	return regexp.MustCompile(`\A` + p.String() + `\z`)
}

// TestReadmeLists: the tables have the flags of `weightfs mount --help` and the exit codes of
// `weightfs help exit-codes` with their meanings, and no others.
func TestReadmeLists(t *testing.T) {
	c := newClone(t)
	everywhere := []string{"help", "json", "quiet"}
	flags := found(c.run("weightfs mount --help"), `(?m)^ +(?:-[a-z], )?--([a-z0-9-]+)`)
	flags = slices.DeleteFunc(flags, func(name string) bool { return slices.Contains(everywhere, name) })
	same(t, "flags", found(firstCells(t, "Flags of `mount`"), "`--([a-z0-9-]+)`"), flags)
	codes := found(strings.ToLower(c.run("weightfs help exit-codes")), `(?m)^ *(\d+  .*)\.$`)
	var rows []string
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| (.*) \|$`).FindAllStringSubmatch(strings.ToLower(section(t, "Exit codes")), -1) {
		rows = append(rows, m[1]+"  "+m[2])
	}
	slices.Sort(rows)
	same(t, "exit codes", rows, codes)
}

// section is what stands below a heading of the README.
func section(t *testing.T, heading string) string {
	readme, err := os.ReadFile("README.md")
	must(t, err)
	_, text, _ := strings.Cut(string(readme), "\n## "+heading+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// firstCells are the first column of the table in that section of the README.
func firstCells(t *testing.T, heading string) string {
	var cells []string
	for line := range strings.Lines(section(t, heading)) {
		if cell, ok := strings.CutPrefix(line, "| "); ok {
			cell, _, _ = strings.Cut(cell, " | ")
			cells = append(cells, cell)
		}
	}
	return strings.Join(cells, "\n")
}

func found(text, expr string) []string {
	var names []string
	for _, m := range regexp.MustCompile(expr).FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return names
}

func same(t *testing.T, what string, readme, program []string) {
	t.Helper()
	if diff := cmp.Diff(program, readme); diff != "" {
		t.Errorf("%s of README.md differ (-program +README.md):\n%s", what, diff)
	}
}
