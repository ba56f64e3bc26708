// Package cli is the command line: one file a verb, each flags, check, call, print.
package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// An app is one call of the program.
type app struct {
	out   io.Writer
	err   io.Writer
	json  bool
	quiet bool
}

// Main runs the program with its arguments, of which the first is the name it was called by, and
// returns the exit code.
func Main(args []string) int {
	a := &app{out: os.Stdout, err: os.Stderr}
	if isMountHelper(args[0]) {
		return a.mountHelper(args)
	}
	root := a.root()
	root.SetArgs(args[1:])
	help := &checkedWriter{Writer: a.out}
	root.SetOut(help)
	root.SetErr(a.err)
	text := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if words := c.Flags().Args(); c == root && len(words) > 0 && !isSource(words[0]) {
			help.err = unknownCommand(root, words[0])
			return
		}
		text(c, args)
	})
	return a.report(cmp.Or(root.Execute(), help.err))
}

// A checkedWriter keeps the first failure: cobra does not ask whether its help could be given.
type checkedWriter struct {
	io.Writer
	err error
}

func (w *checkedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.err = cmp.Or(w.err, err)
	return n, err
}

// report prints a failure as one line and gives its exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitDone
	}
	if answer := (noAnswer{}); errors.As(err, &answer) {
		return exitNo
	}
	if r := (reported{}); errors.As(err, &r) {
		return r.code
	}
	fmt.Fprintf(a.err, "weightfs: %s\n", oneLine(err.Error()))
	return codeOf(err)
}

// oneLine keeps a message on one line whatever name it quotes.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		if r < ' ' || r == 0x7f {
			return '\ufffd'
		}
		return r
	}, strings.TrimRight(s, "\n"))
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "weightfs",
		Short: "Show every tensor of a machine-learning checkpoint as a file",
		Long: `weightfs shows every tensor of a machine-learning checkpoint as a file.

  weightfs mount SOURCE DIR    mount it; then ls, cat, dd, cp, numpy.load(mmap_mode="r")
  weightfs umount DIR
  weightfs ls SOURCE           the same without a mount
  weightfs show SOURCE TENSOR  shape and a corner of the values

SOURCE is a safetensors, GGUF, PyTorch, NumPy or ONNX file, one part of a set, an index, a directory,
hf://org/name from the local hub cache, or ollama:name. Nothing is downloaded and nothing in a
checkpoint is executed.`,
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetUsageFunc(func(c *cobra.Command) error {
		_, err := io.WriteString(c.OutOrStderr(), usageText(c))
		return err
	})
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		hint := fmt.Sprintf("see %s --help", c.CommandPath())
		if word, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
			var flags []string
			c.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, "--"+f.Name) })
			hint = didYouMean("--"+word, flags, hint)
			if others := verbsWith(root, word); others != "" {
				hint = "it is a flag of " + others
			}
		}
		return usageError("%v (%s)", err, hint)
	})
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "print errors only")
	root.CompletionOptions.DisableDefaultCmd = true
	a.twoArguments(root)
	for _, verb := range []*cobra.Command{
		a.mount(), a.umount(), a.status(), a.ls(), a.cat(), a.cp(), a.info(), a.show(), a.verify(), a.diff(), a.completion(root), a.version(),
	} {
		root.AddCommand(verb)
	}
	root.AddCommand(append(topics(), a.man(root))...)
	root.SetHelpCommand(help(root))
	return root
}

// verbsWith names the commands that have a flag.
func verbsWith(root *cobra.Command, flag string) string {
	var names []string
	for _, c := range verbs(root) {
		if c.Flags().Lookup(flag) != nil {
			names = append(names, c.Name())
		}
	}
	return strings.Join(names, ", ")
}

// exactly wants n positional arguments, which names lists.
func exactly(n int, names string) cobra.PositionalArgs { return between(n, n, names) }

// between wants lo to hi positional arguments, or any number from lo on where hi is 0.
func between(lo, hi int, names string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < lo:
			return usageError("%s: %s (usage: %s)", c.Name(), missing(c, len(args)), usageLine(c))
		case hi >= lo && len(args) > hi:
			return usageError("%s takes %s, not %s (usage: %s)", c.Name(), names, plural(len(args), "argument"), usageLine(c))
		}
		return nil
	}
}

// missing names the first argument that is not there, by the usage line, and what it may be.
func missing(c *cobra.Command, given int) string {
	words := slices.DeleteFunc(strings.Fields(c.Use)[1:], func(word string) bool { return strings.HasPrefix(word, "[") })
	name := strings.TrimSuffix(words[given], "...")
	switch name {
	case "SOURCE":
		return "SOURCE is missing: the file or directory of a checkpoint"
	case "TENSOR", "TENSOR|PATH":
		return name + " is missing: weightfs ls SOURCE lists the tensors"
	case "MOUNTPOINT":
		return "MOUNTPOINT is missing: a directory"
	case "SHELL":
		return "the name of a shell is missing: " + strings.Join(shells, ", ")
	}
	return name + " is missing"
}

// onTerminal tells whether w is a person's terminal.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func isMountHelper(arg0 string) bool { return strings.HasPrefix(filepath.Base(arg0), "mount.") }
