// Command weightfs shows every tensor of a machine-learning checkpoint as a file.
package main

import (
	"os"

	"weightfs/cli"
)

func main() { os.Exit(cli.Main(os.Args)) }
