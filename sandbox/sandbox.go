//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// ErrUnsupported: the kernel has no Landlock, or it is turned off.
var ErrUnsupported = errors.New("this kernel has no Landlock")

// Version is the kernel's version of Landlock's interface, 0 where a process cannot be confined.
func Version() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

// A Policy is what a confined process can do with paths; everything else is denied. Links are followed
// when the Box is made. What cannot be reached then is left out.
type Policy struct {
	Read    []string // files, and directories with all that is below them
	Write   []string // directories: their files can be read, made, written and removed
	Connect []string // sockets of services
}

const (
	readFile = ll.AccessFSReadFile
	readDir  = ll.AccessFSReadDir
	change   = ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSMakeReg | ll.AccessFSRemoveFile
)

// A Box is a policy with its paths opened.
type Box struct {
	ruleset int
	flags   uint32
}

// New opens the paths of a policy. Kernels that can restrict less than others are asked for what they
// can: the network, signals and sockets came later than files.
func New(p Policy) (*Box, error) {
	if Version() == 0 {
		return nil, ErrUnsupported
	}
	p.Read = append(slices.Clip(p.Read), fmt.Sprintf("/proc/%d", os.Getpid())) // with its metrics, and the threads that psx looks for
	pin(p.Read)
	fd, flags, err := landlock.V11.BestEffort().NewRulesetFD(p.rules()...)
	if err != nil {
		return nil, err
	}
	return &Box{fd, flags}, nil
}

// pin keeps open what is of procfs: a rule is tied to an inode, which procfs forgets and makes anew.
func pin(paths []string) {
	for _, path := range paths {
		if strings.HasPrefix(path, "/proc/") {
			unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		}
	}
}

func (p Policy) rules() []landlock.Rule {
	var rules []landlock.Rule
	allow := func(paths []string, access landlock.AccessFSSet) {
		for _, path := range paths {
			st, err := os.Stat(path)
			if err != nil {
				continue
			}
			access := access
			if !st.IsDir() {
				access &^= readDir
			}
			rules = append(rules, landlock.PathAccess(access, path).IgnoreIfMissing())
		}
	}
	allow(p.Read, readFile|readDir)
	allow(p.Write, readFile|readDir|change)
	allow(p.Connect, ll.AccessFSResolveUnix)
	return rules
}

// Enter confines every thread of the process, for ever: to the policy, to no new privileges, and to no
// capability but that of reading what root can read, if the process had it. A box is entered once.
func (b *Box) Enter() error {
	defer unix.Close(b.ruleset)
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if err := ll.AllThreadsPrctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if err := ll.AllThreadsLandlockRestrictSelf(b.ruleset, b.flags); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return nil
}

// dropCapabilities leaves CAP_DAC_READ_SEARCH at most: a checkpoint that another user may not read can
// be served by root.
func dropCapabilities() error {
	const kept = 1 << unix.CAP_DAC_READ_SEARCH
	head := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3} // of this thread, whichever it is
	var sets [2]unix.CapUserData                                          // capabilities 0 to 31, and the others
	if err := unix.Capget(head, &sets[0]); err != nil {
		return err
	}
	left := sets[0].Permitted & kept
	wanted := [2]unix.CapUserData{{Effective: left, Permitted: left}}
	if sets == wanted {
		return nil // an ordinary user: all threads need not be stopped
	}
	_, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(head)), uintptr(unsafe.Pointer(&wanted)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
