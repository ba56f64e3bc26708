package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func unknownCommand(root *cobra.Command, word string) error {
	otherwise := cmp.Or(pathMeant(word), "see weightfs --help")
	if strings.ContainsAny(word, "./") {
		return usageError("%s: no such file or directory, and no command of weightfs (%s)", word, otherwise)
	}
	var verbs []string
	for _, c := range root.Commands() {
		switch {
		case c.Name() == word:
			return usageError("-- in front of the command %s: it belongs behind it (usage: %s)", word, usageLine(c))
		case c.HasAlias(word), slices.Contains(c.SuggestFor, word):
			return usageError("unknown command %q: did you mean %q?", word, c.Name())
		}
		verbs = append(verbs, c.Name())
	}
	return usageError("unknown command %q: %s", word, didYouMean(word, verbs, otherwise))
}

// help is `weightfs help`, which cobra's own answers with the help of the program where it knows no such word.
func help(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|TOPIC]",
		Short: "Help about a command or a topic",
		RunE: func(_ *cobra.Command, args []string) error {
			c, _, err := root.Find(args)
			switch {
			case err != nil:
				return err
			case c == root && len(args) > 0:
				return unknownTopic(root, args[0])
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}

func unknownTopic(root *cobra.Command, word string) error {
	var names []string
	for _, c := range root.Commands() {
		if slices.Contains(c.SuggestFor, word) {
			return usageError("no command or topic %q: did you mean %q?", word, c.Name())
		}
		names = append(names, c.Name())
	}
	return usageError("no command or topic %q: %s", word, didYouMean(word, names, "see weightfs --help"))
}

// didYouMean is a hint at the word of a list that was perhaps meant, or else what to do instead.
func didYouMean(word string, list []string, otherwise string) string {
	best, least := "", len(word)/3+1
	for _, w := range list {
		if d := distance(word, w); d < least {
			best, least = w, d
		}
	}
	if best == "" {
		return otherwise
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// distance is the least number of bytes to insert, remove, replace or swap with their neighbour.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
