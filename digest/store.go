package digest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/zeebo/xxh3"
	"golang.org/x/sync/singleflight"

	"weightfs/cachedir"
	"weightfs/disk"
	"weightfs/format/tensor"
)

// A Store keeps the results of one file: in memory, and in the cache directory, in a file named for its
// path. What the cache holds of another state of the file, or damaged, is ignored and replaced. No
// fault of the cache is an error: without it everything is computed again.
type Store struct {
	dir  string // of the cache; empty for none
	path string
	stat iofs.FileInfo

	flight singleflight.Group

	mu      sync.Mutex
	loaded  bool
	id      identity
	records []byte // of all results
	at      map[key]int
	earlier []byte    // records of an earlier state of the file
	seenAt  time.Time // when that was the state
	saved   int       // how many of the records' bytes the cache holds
	savedAt time.Time
	clean   bool // the file in the cache is as records says
}

// NewStore keeps results of the file that was opened at path, with st as it was then, in a cache
// directory. Nothing is read before the first result is asked for.
func NewStore(dir, path string, st iofs.FileInfo) *Store {
	return &Store{dir: dir, path: path, stat: st}
}

// Sum gives the wanted parts of a tensor whose elements src reads, from what is known or by Sum. Those
// who ask for one tensor at the same time wait for one pass.
func (s *Store) Sum(src io.ReaderAt, t *tensor.Info, want Parts) (Result, error) {
	k, want := keyOf(t), possible(t, want)
	if r, ok := s.get(k); ok && want&^r.Has == 0 {
		return r, nil
	}
	r, err, _ := s.flight.Do(fmt.Sprintf("%x %d", k, want), func() (any, error) {
		known, _ := s.get(k)
		missing := want &^ known.Has
		if missing == 0 {
			return known, nil
		}
		r, err := s.sum(src, t, missing)
		if err != nil {
			return Result{}, err
		}
		r.merge(&known)
		s.put(k, &r)
		return r, nil
	})
	return r.(Result), err
}

// Renew computes the wanted parts whatever is known: who verifies a file reads it. It is ErrRotten when
// the hash is another than it was, while the file's times say that nothing was written.
func (s *Store) Renew(src io.ReaderAt, t *tensor.Info, want Parts) (Result, error) {
	k, want := keyOf(t), possible(t, want)
	known, _ := s.get(k)
	r, err := s.sum(src, t, want)
	if err != nil {
		return Result{}, err
	}
	if want&known.Has&Hash != 0 && r.SHA256 != known.SHA256 {
		return r, ErrRotten
	}
	s.put(k, &r)
	return r, nil
}

// ErrRotten: the same file gave other bytes than before.
var ErrRotten = errors.New("other bytes than when it was last read, though nothing was written since")

func (s *Store) sum(src io.ReaderAt, t *tensor.Info, want Parts) (Result, error) {
	defer begin(deviceOf(s.stat))()
	return Sum(src, t, want)
}

func (s *Store) get(k key) (Result, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.loaded {
		s.load()
	}
	at, ok := s.at[k]
	if !ok {
		return Result{}, false
	}
	_, r, _ := parseRecord(s.records[at : at+recordLen])
	return r, true
}

const (
	// A result is written at once, but of many that come fast only every so often.
	saveEvery = time.Second
	saveBytes = 64 << 10
)

func (s *Store) put(k key, r *Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.at[k]; ok { // another part came meanwhile
		_, known, _ := parseRecord(s.records[at : at+recordLen])
		r.merge(&known)
	}
	s.at[k] = len(s.records)
	s.records = appendRecord(s.records, k, r)
	if time.Since(s.savedAt) > saveEvery || len(s.records)-s.saved >= saveBytes {
		s.save()
	}
}

// Save writes to the cache what is not there yet.
func (s *Store) Save() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.save()
}

// name is the file in the cache.
func (s *Store) name() string {
	return filepath.Join(s.dir, fmt.Sprintf("%016x%s", xxh3.HashString(s.id.path), cachedir.DigestExt))
}

// load reads what the cache holds. s.mu is held.
func (s *Store) load() {
	s.loaded, s.at = true, map[key]int{}
	var err error
	if s.id, err = identify(s.path, s.stat); err != nil {
		s.dir = ""
	}
	if s.dir == "" {
		return
	}
	b, at, err := readCache(s.name())
	if err != nil || len(b) < headLen {
		return
	}
	if string(b[:headLen]) != string(s.id.head()) {
		if string(b[:len(magic)]) == magic && sealed(b[:headLen]) {
			s.earlier, s.seenAt = b[headLen:], at
		}
		return
	}
	cachedir.Used(s.name())
	s.clean = (len(b)-headLen)%recordLen == 0
	for b = b[headLen:]; len(b) >= recordLen; b = b[recordLen:] {
		if k, _, ok := parseRecord(b[:recordLen]); ok {
			s.at[k] = len(s.records)
			s.records = append(s.records, b[:recordLen]...)
		} else {
			s.clean = false
		}
	}
	s.saved = len(s.records)
}

func readCache(name string) (b []byte, at time.Time, err error) {
	f, st, err := disk.Open(name)
	if err != nil {
		return nil, at, err
	}
	defer f.Close()
	if st.Size() > headLen+recordsMax*recordLen {
		return nil, at, errors.ErrUnsupported
	}
	b, err = io.ReadAll(io.NewSectionReader(f, 0, st.Size()))
	return b, st.ModTime(), err
}

// ChangedSince tells when the file was last seen in an earlier state, if a hash of that was kept which does
// not stand for the bytes of a tensor that now have the hash sum.
func (s *Store) ChangedSince(t *tensor.Info, sum [sha256.Size]byte) (at time.Time, changed bool) {
	s.get(keyOf(t)) // it loads
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := s.earlier; len(b) >= recordLen; b = b[recordLen:] {
		k, r, ok := parseRecord(b[:recordLen])
		switch {
		case !ok || r.Has&Hash == 0:
		case k == keyOf(t):
			return s.seenAt, r.SHA256 != sum
		default:
			changed = true // of another size, the whole file has another key
		}
	}
	return s.seenAt, changed
}

// unwritable is for the one line that says so, of however many files.
var unwritable sync.Once

// save appends the new records, or writes the file anew. s.mu is held.
func (s *Store) save() {
	if s.dir == "" || s.saved == len(s.records) || !s.id.settled() {
		return
	}
	s.savedAt = time.Now()
	if !s.clean || s.append() != nil {
		if err := s.write(); err != nil {
			unwritable.Do(func() {
				slog.Debug("hashes and statistics are not kept", "directory", s.dir, "reason", err)
			})
			s.dir = ""
			return
		}
	}
	s.saved, s.clean = len(s.records), true
}

// append adds to a file that is still about the same state: another process may have replaced it.
func (s *Store) append() error {
	f, err := os.OpenFile(s.name(), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, headLen)
	if err := tensor.ReadFull(f, head, 0); err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil || string(head) != string(s.id.head()) || (st.Size()-headLen)%recordLen != 0 {
		return errors.Join(err, errors.ErrUnsupported)
	}
	_, err = f.Write(s.records[s.saved:])
	return err
}

// write makes the file anew.
func (s *Store) write() error {
	return cachedir.Write(s.name(), func(w io.Writer) error {
		_, err := w.Write(append(s.id.head(), s.records...))
		return err
	})
}
