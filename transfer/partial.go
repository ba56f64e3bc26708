package transfer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A partial is a copy that is not finished, under another name in the same directory.
type partial struct {
	path     string
	file     *os.File
	done     int64      // everything before this is written
	keep     bool       // when it cannot be finished
	kept     int64      // of it, after leave
	flushing chan error // of the flush that is under way; nil for none
}

const copyMode = 0o644 // less the umask

// newPartial makes one that nobody will look for.
func newPartial(to string) (*partial, error) {
	path := filepath.Join(filepath.Dir(to), ".weightfs-"+strings.ToLower(rand.Text()[:12]))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, copyMode)
	return &partial{path: path, file: f}, err
}

const partialExt = ".partial"

// partialName is the name of the unfinished copy of that identity: another source, or the same one
// after a change, never finds it. File systems take 255 bytes.
func partialName(name, id string) string {
	const most = 255 - len("~12345678") - len(".0123456789abcdef") - len(partialExt)
	if len(name) > most {
		sum := sha256.Sum256([]byte(name))
		name = name[:most] + "~" + hex.EncodeToString(sum[:4])
	}
	return name + "." + id + partialExt
}

func partialPath(to, id string) string {
	return filepath.Join(filepath.Dir(to), partialName(filepath.Base(to), id))
}

var errOthersCopy = errors.New("another copy to this name is under way")

// openPartial opens the kept part of a copy, or begins one.
func openPartial(to, id string, size int64) (*partial, error) {
	p := &partial{path: partialPath(to, id), keep: true}
	p.removeOthers(to, id)
	st, err := os.Lstat(p.path)
	if err == nil && !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is in the way: not a regular file", filepath.Base(p.path))
	}
	if p.file, err = os.OpenFile(p.path, os.O_RDWR|os.O_CREATE, copyMode); err != nil {
		return nil, err
	}
	if err := p.takeOver(size); err != nil {
		p.file.Close()
		return nil, err
	}
	return p, nil
}

// removeOthers takes away unfinished copies to the same name whose source is not as it was then.
func (p *partial) removeOthers(to, id string) {
	entries, err := os.ReadDir(filepath.Dir(to))
	if err != nil {
		return
	}
	suffix := "." + id + partialExt
	prefix := strings.TrimSuffix(filepath.Base(p.path), suffix)
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), prefix+".")
		other, partly := strings.CutSuffix(rest, partialExt)
		if raw, err := hex.DecodeString(other); !ok || !partly || err != nil || len(other) != len(id) || len(raw) == 0 || other == id {
			continue
		}
		path := filepath.Join(filepath.Dir(to), e.Name())
		if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
			if lock(f) == nil {
				os.Remove(path)
			}
			f.Close()
		}
	}
}

// takeOver makes sure that nobody else writes the file, and finds how much of it is good.
func (p *partial) takeOver(size int64) error {
	if err := lock(p.file); err != nil {
		return errOthersCopy
	}
	st, err := p.file.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Lstat(p.path); err != nil || !os.SameFile(now, st) {
		return errOthersCopy // it was finished between the open and the lock
	}
	p.done = min(trusted(st), size)
	if err := p.file.Truncate(p.done); err != nil {
		return err
	}
	if st.ModTime().Equal(sealed) {
		return errors.Join(os.Chtimes(p.path, time.Time{}, time.Now()), p.file.Sync())
	}
	return nil
}

// sealed is the time of a partial file that was left in order: all of it is on the disk.
var sealed = time.Unix(1, 0)

// trusted is how much of a partial file is good. A process that was killed, or a machine that lost
// power, leaves the last stripe incomplete and the one before it perhaps not flushed.
func trusted(st fs.FileInfo) int64 {
	if st.ModTime().Equal(sealed) || st.Size() == 0 {
		return st.Size()
	}
	return max((st.Size()-1)/stripeSize-1, 0) * stripeSize
}

// flush begins to bring to the disk what is written, once the flush before it has ended.
func (p *partial) flush() error {
	if err := p.settle(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- p.file.Sync() }()
	p.flushing = done
	return nil
}

// settle waits for the flush that is under way.
func (p *partial) settle() error {
	if p.flushing == nil {
		return nil
	}
	err := <-p.flushing
	p.flushing = nil
	return err
}

// leave ends the work on a file that cannot be finished, and keeps what is good of it if it is to be
// kept.
func (p *partial) leave() {
	err := p.settle()
	if !p.keep || p.done == 0 || err != nil || p.file.Truncate(p.done) != nil || p.file.Sync() != nil {
		p.remove()
		return
	}
	p.kept = p.done
	os.Chtimes(p.path, time.Time{}, sealed)
	p.file.Close()
}

func (p *partial) remove() {
	p.settle()
	if closeFirst {
		p.file.Close()
	}
	os.Remove(p.path)
	p.file.Close()
}

// become gives the finished file its time, where the file system has times, and its name.
func (p *partial) become(to string, mtime time.Time) error {
	os.Chtimes(p.path, time.Time{}, mtime)
	if closeFirst {
		return errors.Join(p.file.Close(), os.Rename(p.path, to))
	}
	if err := os.Rename(p.path, to); err != nil {
		return err
	}
	return p.file.Close()
}
