package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is that of the texts, which are wrapped by hand.
const helpWidth = 100

// usageText is what --help prints below the text of a verb.
func usageText(c *cobra.Command) string {
	var b strings.Builder
	if c.HasParent() {
		fmt.Fprintf(&b, "Usage:\n  %s\n", usageLine(c))
	} else {
		b.WriteString("Usage:\n  weightfs COMMAND ...\n  weightfs SOURCE MOUNTPOINT [-o OPTIONS]    as mount(8) calls it\n")
	}
	list := func(title string, which func(*cobra.Command) bool) {
		var lines strings.Builder
		for _, sub := range c.Commands() {
			if which(sub) {
				fmt.Fprintf(&lines, "  %-12s %s\n", sub.Name(), sub.Short)
			}
		}
		if lines.Len() > 0 {
			fmt.Fprintf(&b, "\n%s:\n%s", title, lines.String())
		}
	}
	list("Commands", (*cobra.Command).IsAvailableCommand)
	list("Topics (weightfs help TOPIC)", (*cobra.Command).IsAdditionalHelpTopicCommand)
	flags := flagsText(c.LocalFlags()) + flagsText(c.InheritedFlags())
	if flags != "" {
		fmt.Fprintf(&b, "\nFlags:\n%s", flags)
	}
	return b.String()
}

// flagsText is a line for each flag, and more lines where what it means is long.
func flagsText(flags *pflag.FlagSet) string {
	const column = 24
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := flagUsage(f)
		name := "    --" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", --" + f.Name
		}
		if value != "" {
			name += " " + value
		}
		line := fmt.Sprintf("  %-*s", column-2, name)
		if len(line) > column {
			b.WriteString(line + "\n")
			line = strings.Repeat(" ", column)
		}
		for _, word := range strings.Fields(usage) {
			if len(line) > column && len(line)+1+len(word) > helpWidth {
				b.WriteString(line + "\n")
				line = strings.Repeat(" ", column)
			}
			line += " " + word
		}
		b.WriteString(line + "\n")
	})
	return b.String()
}
