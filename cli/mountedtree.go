//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weightfs/format"
	"weightfs/fs"
)

// checkpointViews are the views whose files are checkpoints themselves.
var checkpointViews = []string{"npy", "f32", "rows", "parts", "assembled", "files"}

// refuseMounted refuses as a source what lies in a tree that weightfs shows and is no checkpoint itself.
// The tree would pass for a directory of many: each file of some views is one.
func refuseMounted(path string) error {
	m, real, ok := fs.Around(path)
	if !ok {
		return nil
	}
	if dead, _ := fs.Stale(m.Dir); dead {
		return failf(exitNoSource, "%s: a mount of weightfs whose server is gone (weightfs umount %s clears it)", path, format.ShellQuote(m.Dir))
	}
	top, found := treeTop(m.Dir, real)
	rel, err := filepath.Rel(top, real)
	if err != nil {
		return nil
	}
	view, _, _ := strings.Cut(rel, "/")
	switch {
	case found && slices.Contains(checkpointViews, view):
		return nil
	case found && rel == ".":
		return failf(exitFormat, "%s: the mounted tree of a checkpoint, not the checkpoint (%s)", path, insteadOf(m, top))
	case found:
		return failf(exitFormat, "%s: part of the mounted tree of a checkpoint, and none itself (%s)", path, insteadOf(m, top))
	}
	return failf(exitFormat, "%s: where many checkpoints are mounted, none itself (%s)", path, insteadOf(m, "NAME"))
}

// treeTop is the top of the one checkpoint's tree around a path: the directory that has a tensors.json.
func treeTop(mount, path string) (dir string, found bool) {
	for dir = path; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, "tensors.json")); err == nil {
			return dir, true
		}
		if dir == mount || dir == "/" {
			return mount, false
		}
	}
}

// insteadOf names what to give instead of a tree: what was mounted, if the mount table says so, and what
// in the tree is a checkpoint.
func insteadOf(m fs.Mounted, top string) string {
	var list []string
	if _, err := os.Stat(m.Source); err == nil {
		list = append(list, "name "+m.Source+", which is mounted there")
	}
	if files, _ := filepath.Glob(filepath.Join(top, "assembled", "*.safetensors")); len(files) == 1 {
		list = append(list, files[0])
	}
	if len(list) == 0 {
		return "name what was mounted"
	}
	return strings.Join(list, ", or ")
}
