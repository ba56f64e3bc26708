//go:build unix

package format

import "golang.org/x/sys/unix"

func witnessOf(path string) (witness, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return witness{}, err
	}
	return witness{
		Path: path, Dev: uint64(st.Dev), Ino: st.Ino, Size: st.Size, Mode: int64(st.Mode),
		ModTime: unix.TimespecToNsec(st.Mtim), ChangeTime: unix.TimespecToNsec(st.Ctim),
	}, nil
}
