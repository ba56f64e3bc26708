package set

import (
	"os"
	"path/filepath"
	"strings"
)

// maxLinkText bounds what is looked at as the text of a link.
const maxLinkText = 512

// followText follows a link of a hub's snapshot that a copy without symbolic links (a git checkout, a
// zip file) made a file of: it then holds the path of the blob alone. Only a blob of the same
// repository is followed; any other path comes back as it is.
func followText(repo, path string) string {
	st, err := os.Lstat(path)
	if repo == "" || err != nil || !st.Mode().IsRegular() || st.Size() > maxLinkText {
		return path
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "../") {
		return path
	}
	target := filepath.Join(filepath.Dir(path), filepath.FromSlash(strings.TrimSpace(string(text))))
	abs, err := filepath.Abs(target)
	if err != nil || filepath.Dir(abs) != filepath.Join(repo, "blobs") {
		return path
	}
	if st, err := os.Lstat(abs); err != nil || !st.Mode().IsRegular() {
		return path
	}
	return target
}
