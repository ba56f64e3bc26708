//go:build linux

package fs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Why a mount did not come about.
var (
	ErrNoFUSE  = errors.New("FUSE is not available here")
	ErrRefused = errors.New("mount refused")
)

// go-fuse could mount as well, but it lets the device leak into children, which keeps the mount of a
// dead server hanging, and loses fusermount3's words. It is handed an open device instead.

// attach mounts at dir and opens the connection. Root needs no helper; where root may not mount (a
// container), a helper that passes a device in from outside may stand in for fusermount3.
func attach(dir string, opt Options) (connection, error) {
	if fd, ok := passedDevice(dir); ok {
		return connection{fd: fd, number: connectionNumber(fd, "")}, nil
	}
	dir, err := realpath(dir)
	if err == nil {
		err = checkDirectory(dir)
	}
	if err != nil {
		return connection{}, err
	}
	fd, err := attachAny(dir, opt)
	if err != nil {
		return connection{}, err
	}
	return connection{place: placeOf(dir), fd: fd, number: connectionNumber(fd, dir)}, nil
}

// checkDirectory is needed because fusermount3 mounts over a file as well.
func checkDirectory(dir string) error {
	st, err := bounded(func() (os.FileInfo, error) { return os.Stat(dir) })
	if err == nil && !st.IsDir() {
		err = &os.PathError{Op: "mount", Path: dir, Err: unix.ENOTDIR}
	}
	return err
}

func attachAny(dir string, opt Options) (int, error) {
	helper := fusermount()
	if helper == "" || os.Geteuid() == 0 {
		fd, err := attachDirect(dir, opt)
		if helper == "" || !errors.Is(err, unix.EPERM) {
			return fd, err
		}
	}
	return attachHelper(helper, dir, opt)
}

// passedDevice understands the mount point /dev/fd/N of mount.fuse3 and of containers: the mount is
// made, and its device is our descriptor N.
func passedDevice(dir string) (int, bool) {
	n, ok := strings.CutPrefix(filepath.Clean(dir), "/dev/fd/")
	fd, err := strconv.Atoi(n)
	return fd, ok && err == nil && fd > 0
}

// options are the words that both ways of mounting take. `ro` is always there: without it go-fuse
// lets unlink(2) and rmdir(2) succeed. default_permissions lets the kernel check the modes; without
// it allow_other would let everyone read everything.
func (o Options) options() []string {
	list := []string{"default_permissions", fmt.Sprintf("max_read=%d", maxRequest)}
	if o.AllowOther {
		list = append(list, "allow_other")
	}
	return list
}

const device = "/dev/fuse"

// A deniedError is a device that is there and may not be opened. It is an ErrNoFUSE.
type deniedError struct{ path string }

func (e *deniedError) Unwrap() error { return ErrNoFUSE }

func (e *deniedError) Error() string {
	var st unix.Stat_t
	if err := unix.Stat(e.path, &st); err != nil {
		return "no permission to open " + e.path
	}
	owner := strconv.Itoa(int(st.Uid))
	if u, err := user.LookupId(owner); err == nil {
		owner = u.Username
	}
	return fmt.Sprintf("no permission to open %s (mode %04o, owner %s)", e.path, st.Mode&0o7777, owner)
}

func attachDirect(dir string, opt Options) (int, error) {
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return -1, &deniedError{device}
	case err != nil:
		return -1, fmt.Errorf("%w: %s: %w", ErrNoFUSE, device, err)
	}
	const flags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME
	data := append(opt.options(), fmt.Sprintf("fd=%d,rootmode=%o,user_id=%d,group_id=%d",
		fd, unix.S_IFDIR, os.Geteuid(), os.Getegid()))
	err = unix.Mount(opt.source(), dir, fsType, flags, strings.Join(data, ","))
	if err != nil {
		unix.Close(fd)
	}
	switch {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.ENODEV):
		return -1, fmt.Errorf("%w: the kernel has no FUSE: %w", ErrNoFUSE, err)
	}
	return -1, fmt.Errorf("%w: mount(2) on %s: %w", ErrRefused, dir, err)
}

func (o Options) source() string {
	if o.FsName == "" {
		return "weightfs"
	}
	return o.FsName
}

func fusermount() string {
	for _, name := range []string{"fusermount3", "fusermount"} {
		for _, dir := range []string{"", "/bin/", "/usr/bin/"} { // PATH may be empty in a unit
			if path, err := exec.LookPath(dir + name); err == nil {
				return path
			}
		}
	}
	return ""
}

// attachHelper has the set-user-ID helper mount, which sends the device through a socket.
func attachHelper(helper, dir string, opt Options) (int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socketpair", err)
	}
	defer unix.Close(pair[0])
	theirs := os.NewFile(uintptr(pair[1]), "fusermount")
	words := append(opt.options(), "ro", "nosuid", "nodev", "noexec", "noatime",
		"subtype=weightfs", "fsname="+escapeOption(opt.source()))
	var stderr bytes.Buffer
	cmd := exec.Command(helper, "-o", strings.Join(words, ","), "--", dir)
	cmd.Env = append(os.Environ(), "_FUSE_COMMFD=3")
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = &stderr
	err = cmd.Run()
	theirs.Close()
	if err != nil && strings.Contains(stderr.String(), device+": Permission denied") {
		return -1, &deniedError{device}
	}
	if err != nil {
		return -1, fmt.Errorf("%w: %s", helperFault(stderr.String()), helperWords(stderr.String(), err))
	}
	fd, err := receiveDevice(pair[0])
	if err != nil {
		return -1, fmt.Errorf("%w: no device from %s: %w", ErrRefused, helper, err)
	}
	return fd, nil
}

func escapeOption(s string) string {
	return strings.NewReplacer(`\`, `\\`, `,`, `\,`).Replace(s)
}

// helperFault tells by its words what the helper missed: it has one exit status for everything.
func helperFault(words string) error {
	if strings.Contains(words, "/dev/fuse") || strings.Contains(words, "device not found") {
		return ErrNoFUSE
	}
	return ErrRefused
}

// helperWords are the helper's own, on one line.
func helperWords(words string, err error) string {
	words = strings.Join(strings.FieldsFunc(words, func(r rune) bool { return r == '\n' }), "; ")
	if words == "" {
		return err.Error()
	}
	return words
}

func receiveDevice(socket int) (int, error) {
	buf, oob := make([]byte, 16), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, buf, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil {
		return -1, err
	}
	if len(messages) != 1 {
		return -1, fmt.Errorf("%d control messages", len(messages))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}
