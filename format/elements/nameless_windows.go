package elements

import (
	"crypto/rand"
	"os"
	"path/filepath"

	sys "golang.org/x/sys/windows"
)

// nameless opens a new file that Windows removes when it is closed, also when the process ends in
// whatever way: an open file cannot be removed there.
func nameless(dir string) (*os.File, error) {
	const flags = os.O_RDWR | os.O_CREATE | os.O_EXCL | sys.FILE_FLAG_DELETE_ON_CLOSE
	return os.OpenFile(filepath.Join(dir, "weightfs-"+rand.Text()), flags, 0o600)
}
