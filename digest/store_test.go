package digest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weightfs/format/tensor"
)

// counted tells how often a file was read.
type counted struct {
	io.ReaderAt
	reads atomic.Int64
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	c.reads.Add(1)
	return c.ReaderAt.ReadAt(p, off)
}

// A model is a file of bytes, opened anew for each use as another process would.
type model struct {
	t    *testing.T
	path string
	dir  string // of the cache
}

func newModel(t *testing.T, data []byte) *model {
	m := &model{t, filepath.Join(t.TempDir(), "model"), filepath.Join(t.TempDir(), "cache", "weightfs")}
	m.write(data)
	return m
}

func (m *model) write(data []byte) {
	m.t.Helper()
	if err := os.WriteFile(m.path, data, 0o600); err != nil {
		m.t.Fatal(err)
	}
	m.rest()
}

// rest waits until the file is old enough to be known by its times.
func (m *model) rest() { time.Sleep(40 * time.Millisecond) }

// sum sums the first n bytes of the file through a new Store, and tells whether the file was read.
func (m *model) sum(n int64, want Parts) (Result, bool) {
	m.t.Helper()
	f, err := os.Open(m.path)
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		m.t.Fatal(err)
	}
	s := NewStore(m.dir, m.path, st)
	src := &counted{ReaderAt: f}
	r, err := s.Sum(src, bytesTensor(n), want)
	if err != nil {
		m.t.Fatal(err)
	}
	s.Save()
	return r, src.reads.Load() > 0
}

func bytesTensor(n int64) *tensor.Info {
	return &tensor.Info{DType: tensor.U8, Shape: []uint64{uint64(n)}, Bytes: n, Extent: tensor.Extent{Len: n}}
}

// files are the files of the cache.
func (m *model) files() []string {
	m.t.Helper()
	list, err := filepath.Glob(filepath.Join(m.dir, "*.digest"))
	if err != nil {
		m.t.Fatal(err)
	}
	return list
}

func TestStoreRemembers(t *testing.T) {
	data := []byte("0123456789")
	m := newModel(t, data)
	for n := range int64(4) {
		if _, read := m.sum(n+1, Hash|Stats); !read {
			t.Errorf("%d bytes: known before they were read", n+1)
		}
	}
	for n := range int64(4) {
		r, read := m.sum(n+1, Hash|Stats)
		if read || r.SHA256 != sha256.Sum256(data[:n+1]) || r.Min != '0' || r.Max != float64('0'+n) || r.Finite != uint64(n+1) {
			t.Errorf("%d bytes: read %v, %+v", n+1, read, r)
		}
	}
	if len(m.files()) != 1 {
		t.Errorf("the cache holds %v", m.files())
	}
}

func TestStoreAddsParts(t *testing.T) {
	m := newModel(t, []byte("0123456789"))
	m.sum(10, Hash)
	if r, read := m.sum(10, Stats); !read || r.Has != Hash|Stats || r.SHA256 != sha256.Sum256([]byte("0123456789")) {
		t.Errorf("statistics after the hash: read %v, %+v", read, r)
	}
	if r, read := m.sum(10, Hash|Stats); read || r.Max != '9' {
		t.Errorf("both parts: read %v, %+v", read, r)
	}
}

func TestStoreForgetsAChangedFile(t *testing.T) {
	for name, change := range map[string]func(m *model){
		"rewritten in place, times set back": func(m *model) {
			st, _ := os.Stat(m.path)
			m.write([]byte("abcdefghij"))
			os.Chtimes(m.path, st.ModTime(), st.ModTime())
			m.rest()
		},
		"touched": func(m *model) { os.Chtimes(m.path, time.Now(), time.Now()); m.rest() },
		"replaced": func(m *model) {
			os.Rename(m.path, m.path+".old")
			m.write([]byte("abcdefghij"))
		},
		"longer": func(m *model) { m.write([]byte("abcdefghijk")) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, []byte("0123456789"))
			m.sum(10, Hash)
			change(m)
			now, _ := os.ReadFile(m.path)
			if r, read := m.sum(10, Hash); !read || r.SHA256 != sha256.Sum256(now[:10]) {
				t.Errorf("read %v", read)
			}
			if _, read := m.sum(10, Hash); read {
				t.Error("the new state is not kept")
			}
			if len(m.files()) != 1 {
				t.Errorf("the old state was not dropped: %v", m.files())
			}
		})
	}
}

func TestStoreIgnoresDamage(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"empty":           func(b []byte) []byte { return nil },
		"half a head":     func(b []byte) []byte { return b[:headLen/2] },
		"other version":   func(b []byte) []byte { b[len(magic)-1]++; return b },
		"head":            func(b []byte) []byte { b[30] ^= 1; return b },
		"first record":    func(b []byte) []byte { b[headLen+20] ^= 1; return b },
		"half a record":   func(b []byte) []byte { return b[:len(b)-1] },
		"a record longer": func(b []byte) []byte { return append(b, make([]byte, recordLen)...) },
		"garbage at end":  func(b []byte) []byte { return append(b, "garbage"...) },
		"all zero":        func(b []byte) []byte { return make([]byte, len(b)) },
	} {
		t.Run(name, func(t *testing.T) {
			data := []byte("0123456789")
			m := newModel(t, data)
			m.sum(5, Hash|Stats)
			m.sum(10, Hash|Stats)
			b, err := os.ReadFile(m.files()[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(m.files()[0], damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				for _, n := range []int64{5, 10} {
					if r, _ := m.sum(n, Hash|Stats); r.SHA256 != sha256.Sum256(data[:n]) || r.Finite != uint64(n) {
						t.Errorf("%d bytes: %+v", n, r)
					}
				}
			}
			m.sum(3, Hash)
			for _, n := range []int64{3, 5, 10} {
				if _, read := m.sum(n, Hash); read {
					t.Errorf("%d bytes: the cache was not repaired", n)
				}
			}
		})
	}
}

func TestStoreWithoutCache(t *testing.T) {
	data := []byte("0123456789")
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"none": "", "cannot be made": filepath.Join(blocked, "weightfs")} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, data)
			m.dir = dir
			for range 2 {
				if r, read := m.sum(10, Hash); !read || r.SHA256 != sha256.Sum256(data) {
					t.Errorf("read %v, %+v", read, r)
				}
			}
		})
	}
}

// TestStoreWaitsForTheFileToRest: a file that was just written may change once more within the same
// tick, and its times would not tell.
func TestStoreWaitsForTheFileToRest(t *testing.T) {
	m := newModel(t, nil)
	if err := os.WriteFile(m.path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.sum(10, Hash)
	if st, _ := os.Stat(m.path); len(m.files()) > 0 && time.Since(st.ModTime()) < 20*time.Millisecond {
		t.Error("a result of a file that may still change was kept")
	}
}

func TestStoreReadsOnceForMany(t *testing.T) {
	data := make([]byte, 3*chunkSize)
	src := &counted{ReaderAt: bytes.NewReader(data)}
	m := newModel(t, data)
	st, _ := os.Stat(m.path)
	s := NewStore(m.dir, m.path, st)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			r, err := s.Sum(src, bytesTensor(int64(len(data))), Hash|Stats)
			if err != nil || r.SHA256 != sha256.Sum256(data) {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	group.Wait()
	if n := src.reads.Load(); n != 3 {
		t.Errorf("%d reads of 3 chunks", n)
	}
}

func TestKeysDiffer(t *testing.T) {
	list := []*tensor.Info{
		{DType: tensor.U8, Shape: []uint64{4}, Bytes: 4, Extent: tensor.Extent{Off: 8, Len: 4}},
		{DType: tensor.I8, Shape: []uint64{4}, Bytes: 4, Extent: tensor.Extent{Off: 8, Len: 4}},
		{DType: tensor.U8, Shape: []uint64{2, 2}, Bytes: 4, Extent: tensor.Extent{Off: 8, Len: 4}},
		{DType: tensor.U8, Shape: []uint64{4}, Bytes: 4, Extent: tensor.Extent{Off: 9, Len: 4}},
		{DType: tensor.U8, Shape: []uint64{4}, Bytes: 4, Extent: tensor.Extent{Off: 8, Len: 4}, Layout: &tensor.Layout{}},
		{DType: tensor.U8, Shape: []uint64{4}, Bytes: 4, Extent: tensor.Extent{Off: 8, Len: 4}, Layout: &tensor.Layout{Swap: true}},
		{DType: tensor.U8, Shape: []uint64{4}, Bytes: 4, Extent: tensor.Extent{Off: 8, Len: 4}, Layout: &tensor.Layout{Strides: []int64{2}}},
		{DType: tensor.U8, Shape: []uint64{4}, Bytes: 4, Extent: tensor.Extent{Off: 8, Len: 4}, Layout: &tensor.Layout{Pack: tensor.Deflate}},
	}
	seen := map[key]int{}
	for i, info := range list {
		k := keyOf(info)
		if j, ok := seen[k]; ok {
			t.Errorf("tensors %d and %d have one key", j, i)
		}
		seen[k] = i
	}
	named := *list[0]
	named.Name = "tied"
	if _, ok := seen[keyOf(&named)]; !ok {
		t.Error("a tied tensor has a key of its own")
	}
}

func TestRenewReadsAgain(t *testing.T) {
	data := []byte("0123456789")
	m := newModel(t, data)
	m.sum(10, Hash|Stats)
	st, err := os.Stat(m.path)
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(m.dir, m.path, st)
	src := &counted{ReaderAt: bytes.NewReader(data)}
	if r, err := s.Renew(src, bytesTensor(10), Hash); err != nil || src.reads.Load() == 0 || r.SHA256 != sha256.Sum256(data) {
		t.Errorf("the same bytes: %d reads, %v", src.reads.Load(), err)
	}
	rotten := bytes.NewReader([]byte("01234X6789"))
	if _, err := s.Renew(rotten, bytesTensor(10), Hash|Stats); !errors.Is(err, ErrRotten) {
		t.Errorf("other bytes: %v", err)
	}
	if r, read := m.sum(10, Hash|Stats); read || r.SHA256 != sha256.Sum256(data) {
		t.Error("other bytes took the place of what is known")
	}
}

// FuzzCache: whatever the cache holds, what comes out is right.
func FuzzCache(f *testing.F) {
	r := Result{Has: Hash | Stats, SHA256: sha256.Sum256([]byte("x"))}
	f.Add(appendRecord([]byte{}, keyOf(bytesTensor(3)), &r))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, records []byte) {
		m := &model{t, filepath.Join(t.TempDir(), "model"), t.TempDir()}
		if err := os.WriteFile(m.path, []byte("0123456789"), 0o600); err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(m.path)
		if err != nil {
			t.Fatal(err)
		}
		s := NewStore(m.dir, m.path, st)
		if s.id, err = identify(m.path, st); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.name(), append(s.id.head(), records...), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int64{4, 10} {
			if r, _ := m.sum(n, Hash|Stats); r.SHA256 != sha256.Sum256([]byte("0123456789")[:n]) {
				t.Errorf("%d bytes: %+v", n, r)
			}
		}
	})
}
