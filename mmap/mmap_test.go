//go:build unix

package mmap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

const roleVar = "WEIGHTFS_TEST_ROLE"

func TestMain(m *testing.M) {
	role := map[string]func(*File) error{"copy": childCopies, "touch": childTouches}[os.Getenv(roleVar)]
	if role == nil {
		os.Exit(m.Run())
	}
	if err := cutWhileMapped(os.Args[1], role); err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	os.Exit(0)
}

const testSize = 3*4096 + 100

func testFile(t *testing.T) (*os.File, []byte) {
	t.Helper()
	b := bytes.Repeat([]byte("0123456789abcdef"), testSize/16+1)[:testSize]
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, b
}

// kernelCopy is how the program uses a map: a system call copies from it.
func kernelCopy(b []byte) ([]byte, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	_, err = w.Write(b) // a pipe holds 64 KiB
	w.Close()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func TestSlice(t *testing.T) {
	f, want := testFile(t)
	m, err := Map(f, testSize)
	if err != nil {
		t.Fatal(err)
	}
	f.Close() // the map does not need it
	for _, r := range [][2]int64{{0, testSize}, {1, 1}, {4095, 2}, {4097, 5000}, {testSize - 1, 1}, {testSize, 0}, {7, 0}} {
		s := m.Slice(r[0], r[1])
		got, err := kernelCopy(s)
		if err != nil || !bytes.Equal(got, want[r[0]:r[0]+r[1]]) || cap(s) != len(s) {
			t.Errorf("%d bytes at %d: got %d, cap %d, %v", r[1], r[0], len(got), cap(s), err)
		}
	}
	for _, r := range [][2]int64{{0, testSize + 1}, {testSize, 1}, {-1, 2}, {0, -1}, {1 << 62, 1 << 62}} {
		if !panics(func() { m.Slice(r[0], r[1]) }) {
			t.Errorf("%d bytes at %d outside the map were given", r[1], r[0])
		}
	}
	for range 2 {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if !panics(func() { m.Slice(0, 1) }) {
		t.Error("a closed map gave bytes")
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return
}

func TestAdvise(t *testing.T) {
	f, want := testFile(t)
	m, err := Map(f, testSize)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, a := range []Advice{WillNeed, DontNeed} {
		for _, r := range [][2]int64{{0, testSize}, {5, 10}, {4095, 2}, {testSize - 1, 1}, {testSize, 0}} {
			if err := m.Advise(r[0], r[1], a); err != nil {
				t.Errorf("advice %d for %d bytes at %d: %v", a, r[1], r[0], err)
			}
		}
		if got, err := kernelCopy(m.Slice(0, testSize)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("after advice %d: %d bytes, %v", a, len(got), err)
		}
	}
}

func TestMapEmpty(t *testing.T) {
	f, _ := testFile(t)
	m, err := Map(f, 0)
	if err != nil || len(m.Slice(0, 0)) != 0 || m.Advise(0, 0, WillNeed) != nil || m.Close() != nil {
		t.Errorf("%v", err)
	}
}

func TestMapRefused(t *testing.T) {
	f, _ := testFile(t)
	if _, err := Map(f, -1); err == nil {
		t.Error("a negative size was mapped")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := Map(r, 1); !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EACCES) {
		t.Errorf("a pipe: %v", err)
	}
}

// cutWhileMapped runs in a child: what it does must not end the test.
func cutWhileMapped(path string, then func(*File) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	m, err := Map(f, testSize)
	if err != nil {
		return err
	}
	if err := os.Truncate(path, 4096); err != nil {
		return err
	}
	return then(m)
}

func childCopies(m *File) error {
	if _, err := kernelCopy(m.Slice(8192, 100)); !errors.Is(err, unix.EFAULT) {
		return fmt.Errorf("copying what is cut off: %w", err)
	}
	if got, err := kernelCopy(m.Slice(0, 4096)); err != nil || len(got) != 4096 {
		return fmt.Errorf("copying what is left: %d bytes, %w", len(got), err)
	}
	if err := m.Advise(0, testSize, DontNeed); err != nil {
		return err
	}
	return m.Close()
}

func childTouches(m *File) error {
	return fmt.Errorf("Go code read %d", m.Slice(8192, 1)[0])
}

// The two rules of the package: a system call survives a file cut short, Go code does not.
func TestCutShort(t *testing.T) {
	for role, survives := range map[string]bool{"copy": true, "touch": false} {
		f, _ := testFile(t)
		cmd := exec.Command(os.Args[0], f.Name())
		cmd.Env = append(os.Environ(), roleVar+"="+role)
		out, err := cmd.CombinedOutput()
		if survives && err != nil {
			t.Errorf("%s: %v: %s", role, err, out)
		}
		if !survives && !bytes.Contains(out, []byte("SIGBUS")) {
			t.Errorf("%s: expected SIGBUS, got %v: %s", role, err, out)
		}
	}
}
