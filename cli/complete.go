package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// shells are those that completion knows.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func (a *app) completion(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a completion script for a shell; it completes tensor names inside a checkpoint",
		Long: `Print a completion script for a shell: bash, zsh, fish or powershell. For this session:

  source <(weightfs completion bash)`,
		Args:      exactly(1, "one SHELL"),
		ValidArgs: shells,
		RunE: func(_ *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
			return usageError("no completion for %q, only for %s", args[0], strings.Join(shells, ", "))
		},
	}
}

// completeMost bounds what a shell is given: more than this nobody reads.
const completeMost = 2000

// completeTensors completes tensor names behind SOURCE, the first argument, which is a file; most is
// the number of names that the verb takes, -1 for any.
func (f *openFlags) completeTensors(most int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		if most >= 0 && len(args) > most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := f.open(args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		var names []string
		for i := range c.InOrder() {
			if name := c.Tensor(i).Name; strings.HasPrefix(name, word) && len(names) < completeMost {
				names = append(names, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
