//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A file is one of a mount, beside the file that says what its bytes are.
type file struct {
	mounted string
	want    string
	size    int64
}

func filesOf(mount, want string) (files []file, err error) {
	err = filepath.WalkDir(want, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(want, path)
		if err != nil || info.Size() == 0 {
			return err
		}
		files = append(files, file{filepath.Join(mount, rel), path, info.Size()})
		return nil
	})
	if len(files) == 0 && err == nil {
		err = fmt.Errorf("%s: no files", want)
	}
	return files, err
}

// A client reads one file after the other.
type client struct {
	files  []file
	random *rand.Rand
	until  time.Time
	buf    [2][]byte

	took   []time.Duration // of each read
	bytes  int64
	errors []error
}

// largest is the longest range that a client asks for.
const largest = 512 << 10

func newClient(files []file, number int, until time.Time) *client {
	c := &client{files: files, random: rand.New(rand.NewPCG(1, uint64(number))), until: until}
	for i := range c.buf {
		c.buf[i] = make([]byte, largest)
	}
	return c
}

func (c *client) run() {
	for time.Now().Before(c.until) {
		if err := c.visit(&c.files[c.random.IntN(len(c.files))]); err != nil {
			c.errors = append(c.errors, err)
		}
	}
}

// visit opens a file, reads some of it, and closes it.
func (c *client) visit(f *file) error {
	got, err := os.Open(f.mounted)
	if err != nil {
		return err
	}
	defer got.Close()
	want, err := os.Open(f.want)
	if err != nil {
		return err
	}
	defer want.Close()
	if st, err := got.Stat(); err != nil || st.Size() != f.size {
		return errors.Join(err, fmt.Errorf("%s has %d bytes, not %d", f.mounted, st.Size(), f.size))
	}
	for range 1 + c.random.IntN(10) {
		if err := c.compare(f, got, want); err != nil {
			return err
		}
	}
	return nil
}

// compare reads a range of random place and length; every second time the kernel has forgotten what it
// had of it.
func (c *client) compare(f *file, got, want *os.File) error {
	n := min(f.size, 1+c.random.Int64N(1<<c.random.IntN(20)))
	n = min(n, largest)
	off := c.random.Int64N(f.size - n + 1)
	if c.random.IntN(2) == 0 {
		unix.Fadvise(int(got.Fd()), off, n, unix.FADV_DONTNEED)
	}
	a, b := c.buf[0][:n], c.buf[1][:n]
	begin := time.Now()
	if _, err := got.ReadAt(a, off); err != nil {
		return fmt.Errorf("%d bytes at %d: %w", n, off, err)
	}
	c.took = append(c.took, time.Since(begin))
	c.bytes += n
	if _, err := want.ReadAt(b, off); err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("%s: the %d bytes at %d differ", f.mounted, n, off)
	}
	return nil
}
