package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Topics are said once and shown twice: by `weightfs help TOPIC` and as sections of weightfs(1).
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "What the exit codes mean", Long: exitText()},
		{Use: "environment", Short: "The environment variables that weightfs reads", Long: environmentText},
		{Use: "files", Short: "The files and directories that weightfs uses", Long: filesText},
	}
}

// exitMeanings are in the order of the codes.
var exitMeanings = []struct {
	code    int
	meaning string
}{
	{exitDone, "Done."},
	{exitNo, "The answer is no: diff found a difference, verify a fault."},
	{exitTrouble, "Trouble that is not listed here."},
	{exitUsage, "Wrong usage."},
	{exitNoSource, "The source is not there, not readable, or not in the local cache."},
	{exitFormat, "The format is unknown or malformed, or there is no checkpoint."},
	{exitIncomplete, "A shard or blob is missing."},
	{exitNoTensor, "No such tensor."},
	{exitMountPoint, "The mount point is unfit."},
	{exitStale, "Another mount is there: of weightfs, of something else, or of another user."},
	{exitNoFUSE, "No FUSE here."},
	{exitRefused, "The mount was refused."},
	{exitNotReady, "The tree could not be read in time (--wait)."},
	{exitBusy, "The mount is in use."},
	{exitInterrupted, "Interrupted."},
}

func exitText() string {
	var b strings.Builder
	b.WriteString("Each code has one meaning, which never changes:\n\n")
	for _, e := range exitMeanings {
		fmt.Fprintf(&b, "  %2d  %s\n", e.code, e.meaning)
	}
	b.WriteString("\nAs mount.weightfs, called by mount(8), it is 0, 1 for wrong usage, and 32 for any other failure.")
	return b.String()
}

const environmentText = `The cache directory is the first of these that is an absolute path:

  XDG_CACHE_HOME      below which it is weightfs
  CACHE_DIRECTORY     itself, as systemd sets it for a unit with CacheDirectory=
  HOME                below which it is .cache/weightfs; for root it is /var/cache/weightfs

Where models are looked for that are named and not given as a path:

  HF_HUB_CACHE        the local hub cache, for hf://org/name (also HUGGINGFACE_HUB_CACHE)
  HF_HOME             below which it is hub; else below XDG_CACHE_HOME or HOME
  OLLAMA_MODELS       the store, for ollama:name; else below HOME

From a service manager, with --foreground:

  NOTIFY_SOCKET       is told when the tree can be read, and when the mount ends
  JOURNAL_STREAM      if it is standard error, messages carry their priority

And those of any program:

  TMPDIR              where tensors are unpacked that are stored packed, if not in the cache directory
  GOMAXPROCS          how many threads run at once
  GOGC                how much garbage a server lets lie, in percent; else it keeps it small`

const filesText = `  ~/.cache/weightfs, /var/cache/weightfs
      the cache directory, the latter root's: indexes of checkpoints, hashes and statistics, and
      while they are in use tensors that are stored packed. It may be removed at any time, and is
      kept below 1 GiB.
  ~/.cache/huggingface/hub
      the local hub cache; it is only read
  ~/.ollama/models, /usr/share/ollama/.ollama/models
      the local store of Ollama; it is only read
  /dev/fuse
      the device without which nothing is mounted; the other commands do without it
  /etc/fuse.conf
      must have the line user_allow_other for --allow-other of an ordinary user
  weightfs@.service
      the unit of systemd, for the system and for a user`
