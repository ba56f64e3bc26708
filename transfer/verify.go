package transfer

import (
	"crypto/sha256"
	"io"
	"os"

	"weightfs/format"
)

// verify reads the copy back, from the disk where the kernel can be made to, and compares each chunk
// with what was read to make it. What this call did not read (it was kept from an earlier one) is read
// again from the source.
func (j *job) verify(f *os.File) error {
	dropCache(f)
	return j.chunks(0, j.size, func(off, end int64, buf []byte) error {
		var want [sha256.Size]byte
		if j.digests != nil {
			want = j.digests[off/chunkSize]
		}
		var err error
		if want == ([sha256.Size]byte{}) {
			if want, err = digest(format.ContentReader{Content: j.content}, off, end, buf); err != nil {
				return err
			}
		}
		have, err := digest(f, off, end, buf)
		if err != nil {
			return j.failed(j.to, err)
		}
		if have != want {
			return &MismatchError{j.to, off, end}
		}
		j.opt.Meter.Done(end - off)
		return nil
	})
}

func digest(r io.ReaderAt, off, end int64, buf []byte) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	_, err = io.CopyBuffer(h, struct{ io.Reader }{io.NewSectionReader(r, off, end-off)}, buf)
	h.Sum(sum[:0])
	return sum, err
}

// check verifies a copy that was there.
func (j *job) check() error {
	if !j.opt.Verify {
		return nil
	}
	f, err := os.Open(j.to)
	if err != nil {
		return j.failed(j.to, err)
	}
	defer f.Close()
	return j.verify(f)
}
