package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weightfs/format"
)

// A source is a file of a tree that is made of segments.
type source struct {
	segments []format.Segment
	mtime    time.Time
}

func (s *source) Open() (format.Content, error) { return s, nil }
func (s *source) Stat() format.Stat {
	return format.Stat{Size: s.Size(), Mode: 0o444, ModTime: s.mtime}
}

func (s *source) Size() (n int64) {
	for _, seg := range s.segments {
		n += seg.Len
	}
	return n
}

func (s *source) Segment(off int64) (format.Segment, int64) {
	start := int64(0)
	for _, seg := range s.segments {
		if off < start+seg.Len {
			return seg, start
		}
		start += seg.Len
	}
	return format.Segment{}, start
}

var then = time.Date(2024, 5, 6, 7, 8, 9, 123456789, time.UTC)

func sourceOf(segments ...format.Segment) *source { return &source{segments, then} }

// made is bytes that tell where they stand, by way of hook.
type made struct{ hook func(off int64) error }

// ReadAt implements io.ReaderAt.
func (m made) ReadAt(p []byte, off int64) (int, error) {
	if m.hook != nil {
		if err := m.hook(off); err != nil {
			return 0, err
		}
	}
	for n := 0; n < len(p); {
		n += copy(p[n:], pattern[(off+int64(n))%int64(len(pattern)):])
	}
	return len(p), nil
}

var pattern = noise(1<<20 - 3)

func shard(t testing.TB, dir string, b []byte) *format.Shard {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("shard%d", len(b)))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := format.OpenShard("shard", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func copyTo(t *testing.T, s *source, to string, opt Options) (Outcome, error) {
	t.Helper()
	c := New(opt)
	outcome, err := c.File(t.Context(), s, to)
	return outcome, errors.Join(err, c.Finish())
}

// same fails unless the file holds what the source does.
func same(t *testing.T, s *source, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, _ := f.Stat()
	if st.Size() != s.Size() || !sameBytes(f, format.ContentReader{Content: s}, s.Size()) {
		t.Errorf("%s: other bytes", path)
	}
}

// names lists a directory.
func names(t *testing.T, dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return strings.Join(list, " ")
}

func TestCopy(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	data := noise(9<<20 + 17)
	whole := shard(t, t.TempDir(), data)
	for name, s := range map[string]*source{
		"empty":   sourceOf(),
		"literal": sourceOf(format.Literal([]byte("text\n"))),
		"range":   sourceOf(format.Range(whole, 0, whole.Size())),
		"npy":     sourceOf(format.Literal(noise(128)), format.Range(whole, 999, 8<<20)),
		"neighbours": sourceOf(format.Literal([]byte("header")), format.Range(whole, 7, 10), format.Range(whole, 17, 3<<20), format.Range(whole, 17+3<<20, 0x123456),
			format.Range(whole, 17+3<<20+0x123456, 50), format.Range(whole, 5, 5)),
		"mixed": sourceOf(format.Literal(noise(100)), format.Range(whole, 5<<20, 3<<20), format.Range(whole, 1, 10),
			format.Produced(made{}, 5<<20+1), format.Range(whole, 0, 5<<20)),
	} {
		for _, opt := range []Options{{}, {Verify: true}, {Resume: true}, {Resume: true, Verify: true}} {
			t.Run(fmt.Sprintf("%s,resume=%t,verify=%t", name, opt.Resume, opt.Verify), func(t *testing.T) {
				dir := t.TempDir()
				to := filepath.Join(dir, "copy")
				if err := os.WriteFile(to, []byte("what was there"), 0o600); err != nil {
					t.Fatal(err)
				}
				outcome, err := copyTo(t, s, to, opt)
				if err != nil || outcome != (Outcome{s.Size(), false}) {
					t.Fatalf("%+v, %v", outcome, err)
				}
				same(t, s, to)
				st, err := os.Stat(to)
				if err != nil || st.Mode() != 0o640 || !st.ModTime().Equal(then) {
					t.Errorf("%v %v, %v", st.Mode(), st.ModTime(), err)
				}
				if got := names(t, dir); got != "copy" {
					t.Errorf("left %s", got)
				}
			})
		}
	}
}

func TestAnySegments(t *testing.T) {
	whole := shard(t, t.TempDir(), noise(6<<20))
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		s := sourceOf()
		for range rapid.IntRange(0, 6).Draw(rt, "segments") {
			n := rapid.Int64Range(1, 3<<20).Draw(rt, "len")
			switch rapid.IntRange(0, 2).Draw(rt, "kind") {
			case 0:
				s.segments = append(s.segments, format.Literal(noise(int(n))))
			case 1:
				s.segments = append(s.segments, format.Range(whole, rapid.Int64Range(0, whole.Size()-n).Draw(rt, "off"), n))
			case 2:
				s.segments = append(s.segments, format.Produced(made{}, n))
			}
		}
		to := filepath.Join(dir, "copy")
		if _, err := copyTo(t, s, to, Options{}); err != nil {
			rt.Fatal(err)
		}
		same(t, s, to)
	})
}

var errBroken = errors.New("broken")

func TestFailureLeavesWhatWasThere(t *testing.T) {
	for _, size := range []int64{1000, 20 << 20} {
		dir := t.TempDir()
		to := filepath.Join(dir, "copy")
		if err := os.WriteFile(to, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := sourceOf(format.Produced(made{func(off int64) error {
			if off >= size/2 || size == 1000 {
				return errBroken
			}
			return nil
		}}, size))
		if _, err := copyTo(t, s, to, Options{}); !errors.Is(err, errBroken) {
			t.Errorf("%v", err)
		}
		if b, _ := os.ReadFile(to); string(b) != "old" || names(t, dir) != "copy" {
			t.Errorf("%q, left %s", b, names(t, dir))
		}
	}
}

func TestCancelled(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	s := sourceOf(format.Produced(made{func(off int64) error {
		if off > 10<<20 {
			cancel()
		}
		return nil
	}}, 1<<40))
	_, err := New(Options{}).File(ctx, s, filepath.Join(dir, "copy"))
	if !errors.Is(err, context.Canceled) || names(t, dir) != "" {
		t.Errorf("%v, left %s", err, names(t, dir))
	}
}

func TestNoDirectory(t *testing.T) {
	to := filepath.Join(t.TempDir(), "none", "copy")
	_, err := copyTo(t, sourceOf(), to, Options{})
	if write, ok := errors.AsType[*WriteError](err); !ok || write.Path != to || write.Full() || write.Error() != to+": no such file or directory" {
		t.Errorf("%v", err)
	}
}

func TestMain(m *testing.M) {
	stripeSize = 2 * chunkSize
	dir, err := os.MkdirTemp("", "transfer")
	if err != nil {
		panic(err)
	}
	os.WriteFile(dir+"/head", pattern[:1], 0o600)
	head, err = format.OpenShard("head", dir+"/head")
	if err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// head is a file of a byte. What is made on read at the beginning of a file is read to tell it from
// others; behind the head it is not.
var head *format.Shard

const long = 3*2*chunkSize + 12345

func longSource(hook func(off int64) error) *source {
	return sourceOf(format.Range(head, 0, 1), format.Produced(made{func(off int64) error { return hook(off + 1) }}, long-1))
}

// interrupted copies with --resume until a byte behind two stripes is read.
func interrupted(t *testing.T, to string) {
	t.Helper()
	s := longSource(func(off int64) error {
		if off >= 2*stripeSize+chunkSize {
			return errBroken
		}
		return nil
	})
	if _, err := copyTo(t, s, to, Options{Resume: true}); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	if got := names(t, filepath.Dir(to)); !strings.HasPrefix(got, "copy.") || !strings.HasSuffix(got, ".partial") {
		t.Fatalf("left %s", got)
	}
}

func TestResume(t *testing.T) {
	for name, c := range map[string]struct {
		before func(t *testing.T, partial string)
		from   int64
		verify bool
	}{
		"kept":                {func(*testing.T, string) {}, 2 * stripeSize, false},
		"kept, verified":      {func(*testing.T, string) {}, 0, true},
		"killed":              {touch, 0, false},
		"killed later":        {func(t *testing.T, path string) { grow(t, path, 3*stripeSize+1) }, 2 * stripeSize, false},
		"killed at the start": {func(t *testing.T, path string) { grow(t, path, 0) }, 0, false},
		"too long":            {func(t *testing.T, path string) { grow(t, path, 9*stripeSize) }, 3 * stripeSize, false},
	} {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "copy")
			interrupted(t, to)
			c.before(t, filepath.Join(filepath.Dir(to), names(t, filepath.Dir(to))))
			var least atomic.Int64
			least.Store(long)
			s := longSource(func(off int64) error {
				for now := least.Load(); off < now && !least.CompareAndSwap(now, off); now = least.Load() {
				}
				return nil
			})
			m := &meter{}
			if _, err := copyTo(t, s, to, Options{Resume: true, Verify: c.verify, Meter: m}); err != nil {
				t.Fatal(err)
			}
			if least.Load() < c.from {
				t.Errorf("read from %d, want %d", least.Load(), c.from)
			}
			want := int64(long)
			if c.verify {
				want *= 2
			}
			if m.done+m.spared != want {
				t.Errorf("%d done and %d spared of %d", m.done, m.spared, want)
			}
			same(t, s, to)
			if got := names(t, filepath.Dir(to)); got != "copy" {
				t.Errorf("left %s", got)
			}
		})
	}
}

type meter struct {
	mu           sync.Mutex
	done, spared int64
}

func (m *meter) Done(n int64)   { m.mu.Lock(); m.done += n; m.mu.Unlock() }
func (m *meter) Spared(n int64) { m.mu.Lock(); m.spared += n; m.mu.Unlock() }

func touch(t *testing.T, path string) {
	if err := os.Chtimes(path, time.Time{}, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// grow writes more of the right bytes, as a process that is killed before it can tidy up does.
func grow(t *testing.T, path string, size int64) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, _ := f.Stat()
	f.Truncate(size)
	if size > st.Size() {
		io.Copy(io.NewOffsetWriter(f, st.Size()), io.NewSectionReader(made{}, st.Size()-1, size-st.Size()))
	}
	touch(t, path)
}

func TestResumeAfterAChangeOfTheSource(t *testing.T) {
	to := filepath.Join(t.TempDir(), "copy")
	interrupted(t, to)
	s := longSource(func(int64) error { return nil })
	s.mtime = then.Add(time.Nanosecond)
	m := &meter{}
	if _, err := copyTo(t, s, to, Options{Resume: true, Meter: m}); err != nil {
		t.Fatal(err)
	}
	if m.done != long {
		t.Errorf("%d done of %d", m.done, int64(long))
	}
	if got := names(t, filepath.Dir(to)); got != "copy" {
		t.Errorf("left %s", got)
	}
}

func TestPresent(t *testing.T) {
	data := shard(t, t.TempDir(), noise(2<<20))
	s := sourceOf(format.Literal([]byte("header 1")), format.Range(data, 0, data.Size()))
	to := filepath.Join(t.TempDir(), "copy")
	for i, c := range []struct {
		change  func()
		present bool
	}{
		{func() {}, false},
		{func() {}, true},
		{func() { s.segments[0] = format.Literal([]byte("header 2")) }, false},
		{func() { os.Chtimes(to, time.Time{}, then.Truncate(time.Second)) }, true},
		{func() { os.Chtimes(to, time.Time{}, then.Add(time.Second)) }, false},
		{func() { os.Truncate(to, 5); os.Chtimes(to, time.Time{}, then) }, false},
	} {
		c.change()
		outcome, err := copyTo(t, s, to, Options{Resume: true})
		if err != nil || outcome.Present != c.present {
			t.Errorf("%d: %+v, %v", i, outcome, err)
		}
		same(t, s, to)
	}
	if outcome, err := copyTo(t, s, to, Options{}); err != nil || outcome.Present {
		t.Errorf("without Resume: %+v, %v", outcome, err)
	}
}

// corrupt changes a byte of a copy; its time stays.
func corrupt(t *testing.T, path string, at int64) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, _ := f.Stat()
	b := []byte{0}
	f.ReadAt(b, at)
	f.WriteAt([]byte{^b[0]}, at)
	os.Chtimes(path, time.Time{}, st.ModTime())
}

func TestVerifyFindsOtherBytes(t *testing.T) {
	dir := t.TempDir()
	to := filepath.Join(dir, "copy")
	const size = 20 << 20
	s := sourceOf(format.Produced(made{func(off int64) error {
		if list, _ := filepath.Glob(dir + "/.weightfs-*"); off == size-1<<20 && len(list) == 1 {
			corrupt(t, list[0], 5<<20)
		}
		return nil
	}}, size))
	for range 20 { // the chunk may not be written yet
		_, err := copyTo(t, s, to, Options{Verify: true})
		if err == nil {
			if err := os.Remove(to); err != nil { // of the copy that fails nothing may be left
				t.Fatal(err)
			}
			continue
		}
		mismatch, ok := errors.AsType[*MismatchError](err)
		if !ok || mismatch.From != 4<<20 || mismatch.To != 8<<20 || names(t, dir) != "" {
			t.Fatalf("%v, left %s", err, names(t, dir))
		}
		return
	}
	t.Error("never found")
}

func TestVerifyOfWhatIsPresent(t *testing.T) {
	data := shard(t, t.TempDir(), noise(9<<20))
	s := sourceOf(format.Range(data, 0, data.Size()))
	to := filepath.Join(t.TempDir(), "copy")
	if _, err := copyTo(t, s, to, Options{}); err != nil {
		t.Fatal(err)
	}
	corrupt(t, to, 9<<20-1)
	if outcome, err := copyTo(t, s, to, Options{Resume: true}); err != nil || !outcome.Present {
		t.Errorf("%+v, %v", outcome, err)
	}
	_, err := copyTo(t, s, to, Options{Resume: true, Verify: true})
	if mismatch, ok := errors.AsType[*MismatchError](err); !ok || mismatch.From != 8<<20 || mismatch.To != 9<<20 {
		t.Errorf("%v", err)
	}
}

func TestTwoCopiesToOneName(t *testing.T) {
	to := filepath.Join(t.TempDir(), "copy")
	var second error
	var once sync.Once
	s := longSource(func(int64) error { return nil })
	inside := longSource(func(off int64) error {
		once.Do(func() { _, second = copyTo(t, s, to, Options{Resume: true}) })
		return nil
	})
	if _, err := copyTo(t, inside, to, Options{Resume: true}); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(second, errOthersCopy) {
		t.Errorf("%v", second)
	}
	same(t, s, to)
}

func TestSourceChanges(t *testing.T) {
	dir := t.TempDir()
	data := shard(t, t.TempDir(), noise(12<<20))
	s := sourceOf(format.Literal([]byte("x")), format.Range(data, 0, data.Size()))
	if err := os.Truncate(data.Path, 5<<20); err != nil {
		t.Fatal(err)
	}
	for _, opt := range []Options{{}, {Verify: true}} {
		if _, err := copyTo(t, s, filepath.Join(dir, "copy"), opt); !errors.Is(err, format.ErrChanged) || names(t, dir) != "" {
			t.Errorf("%v, left %s", err, names(t, dir))
		}
	}
}

func TestPartialName(t *testing.T) {
	const id = "0123456789abcdef"
	if got := partialName("model.safetensors", id); got != "model.safetensors.0123456789abcdef.partial" {
		t.Error(got)
	}
	a, b := partialName(strings.Repeat("a", 255), id), partialName(strings.Repeat("a", 254)+"b", id)
	if len(a) > 255 || a == b {
		t.Errorf("%d bytes", len(a))
	}
}

func TestManySmallFiles(t *testing.T) {
	dir := t.TempDir()
	c := New(Options{})
	for i := range 3 * fewFiles {
		if _, err := c.File(t.Context(), sourceOf(format.Literal([]byte{byte(i)})), filepath.Join(dir, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Finish(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "7")); err != nil || !bytes.Equal(b, []byte{7}) {
		t.Errorf("%q, %v", b, err)
	}
}
