// Package cli is the command line: one file a verb, each flags, check, call, print.
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	root.SetOut(a.out)
	root.SetErr(a.err)
	return a.report(root.Execute())
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
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		hint := fmt.Sprintf("see %s --help", c.CommandPath())
		if word, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
			var flags []string
			c.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, "--"+f.Name) })
			hint = didYouMean("--"+word, flags, hint)
		}
		return usageError("%v (%s)", err, hint)
	})
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "print errors only")
	root.CompletionOptions.DisableDefaultCmd = true
	a.twoArguments(root)
	for _, verb := range []*cobra.Command{
		a.mount(), a.umount(), a.status(), a.ls(), a.cat(), a.cp(), a.info(), a.show(), a.verify(), a.diff(), a.completion(root),
	} {
		root.AddCommand(verb)
	}
	root.AddCommand(append(topics(), a.man(root))...)
	return root
}

// exactly wants n positional arguments, or more with atLeast, and names them when they are not there.
func exactly(n int, names string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError("%s takes %s, not %s (usage: %s)", c.CommandPath(), names, plural(len(args), "argument"), c.UseLine())
		}
		return nil
	}
}

func between(lo, hi int, names string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < lo || hi > 0 && len(args) > hi {
			return usageError("%s takes %s, not %s (usage: %s)", c.CommandPath(), names, plural(len(args), "argument"), c.UseLine())
		}
		return nil
	}
}

// onTerminal tells whether w is a person's terminal.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func isMountHelper(arg0 string) bool { return strings.HasPrefix(filepath.Base(arg0), "mount.") }
