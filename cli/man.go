package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The manual pages are made of the same texts and flags as --help. The texts hold `*`, `<(` and
// commands on lines of their own, which a detour through Markdown would change.

// man is for those who make packages.
func (a *app) man(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write the manual pages into a directory", Hidden: true,
		Args: exactly(1, "DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			for name, page := range manPages(root) {
				if err := os.WriteFile(filepath.Join(args[0], name), page, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// manPages are weightfs.1, a page for each verb, and what mount(8) needs, by file name.
func manPages(root *cobra.Command) map[string][]byte {
	pages := map[string][]byte{"weightfs.1": programPage(root)}
	for _, c := range verbs(root) {
		pages["weightfs-"+c.Name()+".1"] = verbPage(c)
		if c.Name() == "mount" && c.Flags().HasFlags() {
			pages["mount.weightfs.8"] = helperPage(c)
		}
	}
	return pages
}

// verbs are the commands that do something, without the hidden ones.
func verbs(root *cobra.Command) []*cobra.Command {
	var list []*cobra.Command
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			list = append(list, c)
		}
	}
	return list
}

func usageLine(c *cobra.Command) string { return strings.TrimSuffix(c.UseLine(), " [flags]") }

func programPage(root *cobra.Command) []byte {
	p := newManPage("weightfs", 1, root.Short)
	var lines []string
	for _, c := range verbs(root) {
		lines = append(lines, usageLine(c))
	}
	p.synopsis(lines...)
	p.section("Description")
	p.text(root.Long)
	p.section("Commands")
	for _, c := range verbs(root) {
		p.item(bold(c.Name()), c.Short+": see weightfs-"+c.Name()+"(1).")
	}
	p.section("Options")
	p.flags(root.PersistentFlags())
	p.item(bold("-h")+", "+bold("--help"), "print help; after the name of a command, that for the command")
	p.item(bold("--version"), "print the version")
	p.section("Exit status")
	p.text(exitText())
	p.section("Environment")
	p.text(environmentText)
	p.section("Files")
	p.text(filesText)
	p.seeAlso(root, nil, "mount.weightfs(8)", "fusermount3(1)")
	return p.Bytes()
}

func verbPage(c *cobra.Command) []byte {
	p := newManPage("weightfs-"+c.Name(), 1, c.Short)
	p.synopsis(usageLine(c))
	p.section("Description")
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	p.text(text)
	if len(c.Aliases) > 0 {
		p.WriteString(".PP\n")
		p.text("It is also called " + strings.Join(c.Aliases, ", ") + ".")
	}
	p.section("Options")
	p.flags(c.LocalNonPersistentFlags())
	p.flags(c.Root().PersistentFlags())
	p.section("Exit status")
	p.text("See weightfs(1).")
	p.seeAlso(c.Root(), c, "weightfs(1)")
	return p.Bytes()
}

// A manPage is a page in the macros of man(7).
type manPage struct{ bytes.Buffer }

func newManPage(name string, section int, short string) *manPage {
	p := &manPage{}
	fmt.Fprintf(p, ".TH %s %d \"%s\" \"weightfs %s\"\n", roff(strings.ToUpper(name)), section, Date, roff(Version))
	p.section("Name")
	fmt.Fprintf(p, "%s \\- %s\n", roff(name), roff(short))
	return p
}

func (p *manPage) section(name string) { fmt.Fprintf(p, ".SH %s\n", strings.ToUpper(name)) }

// synopsis prints lines of usage, in bold what is typed as it is.
func (p *manPage) synopsis(lines ...string) {
	p.section("Synopsis")
	for i, line := range lines {
		if i > 0 {
			p.WriteString(".br\n")
		}
		command, rest := line, ""
		if typed := literal.FindStringIndex(line); typed != nil {
			command, rest = line[:typed[1]], line[typed[1]:]
		}
		fmt.Fprintf(p, "%s%s\n", bold(command), roff(rest))
	}
}

// literal is what stands before the first word in capitals or brackets.
var literal = regexp.MustCompile(`^[^A-Z\[]*[^A-Z\[ ]`)

// text prints paragraphs; those that are indented stand as they are, as in --help.
func (p *manPage) text(s string) {
	for i, paragraph := range strings.Split(s, "\n\n") {
		if i > 0 {
			p.WriteString(".PP\n")
		}
		display := strings.HasPrefix(paragraph, "  ")
		if display {
			p.WriteString(".nf\n")
		}
		for line := range strings.SplitSeq(paragraph, "\n") {
			p.WriteString(roff(strings.TrimPrefix(line, "  ")) + "\n")
		}
		if display {
			p.WriteString(".fi\n")
		}
	}
}

// item prints a tagged paragraph. The tag is roff.
func (p *manPage) item(tag, text string) {
	fmt.Fprintf(p, ".TP\n%s\n%s\n", tag, roff(text))
}

func (p *manPage) flags(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" {
			return
		}
		tag := bold("--" + f.Name)
		if f.Shorthand != "" {
			tag = bold("-"+f.Shorthand) + ", " + tag
		}
		value, usage := flagUsage(f)
		if value != "" {
			tag += " " + italic(value)
		}
		p.item(tag, usage)
	})
}

// flagUsage is the word for a flag's value, none for a switch, and its text with the default.
func flagUsage(f *pflag.Flag) (value, usage string) {
	value, usage = pflag.UnquoteUsage(f)
	if f.Value.Type() == "bool" {
		return "", usage
	}
	if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "0" {
		usage += " (default " + f.DefValue + ")"
	}
	return value, usage
}

// seeAlso names the pages of the other verbs after the first few.
func (p *manPage) seeAlso(root, self *cobra.Command, first ...string) {
	p.section("See also")
	for _, c := range verbs(root) {
		if c != self {
			first = append(first, "weightfs-"+c.Name()+"(1)")
		}
	}
	p.WriteString(roff(strings.Join(first, ", ")) + "\n")
}

// roffText escapes what troff would act on.
var roffText = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "~", `\(ti`, "^", `\(ha`)

func roff(s string) string {
	s = roffText.Replace(s)
	if strings.HasPrefix(s, ".") {
		return `\&` + s
	}
	return s
}

func bold(s string) string { return `\fB` + roff(s) + `\fR` }

func italic(s string) string { return `\fI` + roff(s) + `\fR` }
