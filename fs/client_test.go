//go:build linux

package fs

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"
)

// A process that serves a mount must not read it, or it may wait for itself. Tests read through a
// client: the test program started once more, which takes system calls as lines.

const roleVar = "WEIGHTFS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "client":
		runClient(os.Stdin, os.Stdout)
	case "server":
		runServer(os.Args[1])
	default:
		os.Exit(m.Run())
	}
}

// runServer mounts the fixture until it is told to end.
func runServer(dir string) {
	s, err := Mount(dir, fixture(), Options{FsName: "fixture"})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	<-c
	if err := s.Stop(time.Second); err != nil {
		fmt.Println(err)
	}
}

type client struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
}

func newClient(t testing.TB) *client { return newClientAs(t, nil) }

func newClientAs(t testing.TB, who *syscall.Credential) *client {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVar+"=client", "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, cmd: cmd, in: in, lines: bufio.NewReaderSize(out, 1<<16)}
	t.Cleanup(c.close)
	return c
}

func (c *client) close() {
	c.in.Close()
	c.cmd.Wait()
}

func (c *client) send(words ...any) {
	for i, w := range words {
		if s, ok := w.(string); ok {
			words[i] = strconv.Quote(s)
		}
	}
	fmt.Fprintln(c.in, words...)
}

// receive gives what the call returned, or its errno.
func (c *client) receive() (string, error) {
	line, err := c.lines.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("client ended: %w", err)
	}
	status, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	if status == "ok" {
		b, err := base64.StdEncoding.DecodeString(rest)
		return string(b), err
	}
	if n, err := strconv.Atoi(status); err == nil && n != 0 {
		return "", syscall.Errno(n)
	}
	return "", errors.New(rest)
}

func (c *client) call(words ...any) (string, error) {
	c.send(words...)
	return c.receive()
}

func (c *client) must(words ...any) string {
	c.t.Helper()
	s, err := c.call(words...)
	if err != nil {
		c.t.Fatalf("%v: %v", words, err)
	}
	return s
}

func (c *client) wants(want error, words ...any) {
	c.t.Helper()
	if got, err := c.call(words...); !errors.Is(err, want) {
		c.t.Errorf("%v: got %d bytes, error %v; want error %v", words, len(got), err, want)
	}
}

func (c *client) open(path string) int {
	c.t.Helper()
	n, err := strconv.Atoi(c.must("open", path))
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func runClient(in io.Reader, out io.Writer) {
	for s := bufio.NewScanner(in); s.Scan(); {
		got, err := clientCall(s.Text())
		var errno syscall.Errno
		switch {
		case err == nil:
			fmt.Fprintln(out, "ok", base64.StdEncoding.EncodeToString([]byte(got)))
		case errors.As(err, &errno):
			fmt.Fprintln(out, int(errno), err)
		default:
			fmt.Fprintln(out, 0, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
}

func clientCall(line string) (string, error) {
	var verb, path string
	var fd, off, n int
	switch {
	case scan(line, &verb, &path):
		return clientPath(verb, path)
	case scan(line, &verb, &fd):
		return clientFile(verb, fd, 0, 0)
	case scan(line, &verb, &fd, &off, &n):
		return clientFile(verb, fd, off, n)
	}
	return "", fmt.Errorf("bad call %q", line)
}

func scan(line string, words ...any) bool {
	format := strings.TrimSpace(strings.Repeat("%q ", 2))
	switch len(words) {
	case 2:
		if _, number := words[1].(*int); number {
			format = "%q %d"
		}
	case 4:
		format = "%q %d %d %d"
	}
	n, err := fmt.Sscanf(line+"\n", format+"\n", words...)
	return err == nil && n == len(words)
}

var kept []byte // a client's map

func clientFile(verb string, fd, off, n int) (string, error) {
	switch verb {
	case "pread":
		buf := make([]byte, n)
		got, err := unix.Pread(fd, buf, int64(off))
		return string(buf[:max(got, 0)]), err
	case "readall":
		b, err := io.ReadAll(io.NewSectionReader(readerAt(fd), 0, 1<<40))
		return string(b), err
	case "map":
		b, err := unix.Mmap(fd, int64(off), n, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return "", err
		}
		defer unix.Munmap(b)
		return string(b), nil
	case "keep-map":
		b, err := unix.Mmap(fd, 0, 1, unix.PROT_READ, unix.MAP_SHARED)
		kept = b
		return "", errors.Join(err, unix.Close(fd))
	case "drop-map":
		return "", unix.Munmap(kept)
	case "drop": // what the kernel has cached of the file
		return "", unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED)
	case "close":
		return "", unix.Close(fd)
	}
	return "", fmt.Errorf("bad verb %q", verb)
}

type readerAt int

func (fd readerAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := unix.Pread(int(fd), p, off)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}

func clientPath(verb, path string) (string, error) {
	if call, ok := writeCalls[verb]; ok {
		return "", call(path)
	}
	switch verb {
	case "open":
		fd, err := unix.Open(path, unix.O_RDONLY, 0)
		return strconv.Itoa(fd), err
	case "chdir":
		return "", os.Chdir(path)
	case "stat":
		var st unix.Stat_t
		err := unix.Lstat(path, &st)
		return fmt.Sprintf("mode=%o nlink=%d uid=%d gid=%d size=%d blocks=%d blksize=%d ino=%d mtime=%d",
			st.Mode, st.Nlink, st.Uid, st.Gid, st.Size, st.Blocks, st.Blksize, st.Ino, st.Mtim.Sec), err
	case "statfs":
		var st unix.Statfs_t
		err := unix.Statfs(path, &st)
		return fmt.Sprintf("bytes=%d free=%d name=%d", st.Blocks*uint64(st.Frsize), st.Bfree, st.Namelen), err
	case "list":
		return listed(path)
	case "readlink":
		return os.Readlink(path)
	case "getxattr":
		file, attr, _ := strings.Cut(path, "#")
		buf := make([]byte, 1024)
		n, err := unix.Getxattr(file, attr, buf)
		return string(buf[:max(n, 0)]), err
	case "listxattr":
		buf := make([]byte, 1024)
		n, err := unix.Listxattr(path, buf)
		return string(buf[:max(n, 0)]), err
	case "fstest":
		return "", testFS(path)
	case "walk":
		n := 0
		err := iofs.WalkDir(os.DirFS(path), ".", func(string, iofs.DirEntry, error) error { n++; return nil })
		return strconv.Itoa(n), err
	}
	return "", fmt.Errorf("bad verb %q", verb)
}

// listed gives the names in the directory's own order, read in small steps.
func listed(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var names []string
	for {
		some, err := f.Readdirnames(3)
		names = append(names, some...)
		if err == io.EOF {
			return strings.Join(names, " "), nil
		}
		if err != nil {
			return "", err
		}
	}
}

func testFS(dir string) error {
	var names []string
	fsys := os.DirFS(dir)
	err := iofs.WalkDir(fsys, ".", func(p string, d iofs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, p)
		}
		return err
	})
	return errors.Join(err, fstest.TestFS(fsys, names...))
}

// writeCalls are all calls that change a file, a directory or a name.
var writeCalls = map[string]func(path string) error{
	"open-write": func(p string) error { _, err := unix.Open(p, unix.O_WRONLY, 0); return err },
	"open-rdwr":  func(p string) error { _, err := unix.Open(p, unix.O_RDWR, 0); return err },
	"open-trunc": func(p string) error { _, err := unix.Open(p, unix.O_RDONLY|unix.O_TRUNC, 0); return err },
	"create":     func(p string) error { _, err := unix.Open(p+".new", unix.O_WRONLY|unix.O_CREAT, 0o600); return err },
	"tmpfile":    func(p string) error { _, err := unix.Open(p+"/..", unix.O_WRONLY|unix.O_TMPFILE, 0o600); return err },
	"truncate":   func(p string) error { return unix.Truncate(p, 0) },
	"chmod":      func(p string) error { return unix.Chmod(p, 0o600) },
	"chown":      func(p string) error { return unix.Lchown(p, 1, 1) },
	"utimes":     func(p string) error { return unix.Utimes(p, make([]unix.Timeval, 2)) },
	"mkdir":      func(p string) error { return unix.Mkdir(p+".new", 0o700) },
	"mkfifo":     func(p string) error { return unix.Mkfifo(p+".new", 0o600) },
	"rename":     func(p string) error { return unix.Rename(p, p+".new") },
	"link":       func(p string) error { return unix.Link(p, p+".new") },
	"symlink":    func(p string) error { return unix.Symlink("x", p+".new") },
	"unlink":     func(p string) error { return unix.Unlink(p) },
	"rmdir":      func(p string) error { return unix.Rmdir(p) },
	"setxattr":   func(p string) error { return unix.Setxattr(p, "user.x", []byte("x"), 0) },
	"delxattr":   func(p string) error { return unix.Removexattr(p, "user.x") },
	"access":     func(p string) error { return unix.Access(p, unix.W_OK) },
}
