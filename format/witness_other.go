//go:build !unix

package format

import "os"

func witnessOf(path string) (witness, error) {
	st, err := os.Stat(path)
	if err != nil {
		return witness{}, err
	}
	return witness{Path: path, Size: st.Size(), Mode: int64(st.Mode()), ModTime: st.ModTime().UnixNano()}, nil
}
