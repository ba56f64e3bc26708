//go:build linux

package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weightfs/format/tensor"
	"weightfs/fs"
)

func (a *app) status() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List what is mounted",
		Long: `List the mounts of weightfs: source, mount point, size, the server's process, and its state:
alive, stale (a file of the checkpoint is not what was mounted), dead (its process is gone),
"no answer", or "no access" (another user's). A mount of many, or without raw/, is never called stale.`,
		Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error { return a.runStatus() },
	}
}

// A mountStatus is a mount with what is known of its server.
type mountStatus struct {
	fs.Mounted
	state string
	size  uint64
	sized bool
	pid   int // 0: not found
}

func (a *app) runStatus() error {
	mounts, err := fs.Mounts()
	if err != nil {
		return err
	}
	servers := findServers()
	list := make([]mountStatus, len(mounts))
	var group sync.WaitGroup
	for i, m := range mounts {
		list[i] = mountStatus{Mounted: m, pid: servers.of(m)}
		group.Go(list[i].probe)
	}
	group.Wait()
	if a.json {
		return a.statusJSON(list)
	}
	return a.statusTable(list)
}

// probeTime is how long a mount may take to answer.
const probeTime = 2 * time.Second

// probe asks with statfs(2), since the kernel answers stat(2) of a dead mount from what it remembers.
func (s *mountStatus) probe() {
	type result struct {
		st    unix.Statfs_t
		err   error
		stale bool
	}
	answer := make(chan result, 1)
	go func() {
		var r result
		if r.err = unix.Statfs(s.Dir, &r.st); r.err == nil {
			r.stale = outdated(s.Dir)
		}
		answer <- r
	}()
	select {
	case r := <-answer:
		switch {
		case r.err == nil:
			s.state, s.size = "alive", r.st.Blocks*uint64(r.st.Bsize)
			s.sized = s.size > 0 // of a mount of many it is not known
			if r.stale {
				s.state = "stale"
			}
		case errors.Is(r.err, unix.ENOTCONN):
			s.state = "dead"
		case errors.Is(r.err, unix.EACCES):
			s.state = "no access"
		default:
			s.state = r.err.Error()
		}
	case <-time.After(probeTime):
		s.state = "no answer"
	}
}

// outdated tells that a file of the checkpoint has changed: the server looks at all of them when the sums
// are opened, and reads none until the sums are read.
func outdated(mount string) bool {
	f, err := os.Open(filepath.Join(mount, "SHA256SUMS"))
	if err == nil {
		f.Close()
	}
	return errors.Is(err, unix.ESTALE)
}

func (a *app) statusTable(list []mountStatus) error {
	if len(list) == 0 {
		if a.quiet {
			return nil
		}
		_, err := fmt.Fprintln(a.out, "nothing is mounted")
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SOURCE\tMOUNTPOINT\tSIZE\tPID\tSTATE")
	for _, s := range list {
		size, pid := "-", "-"
		if s.sized {
			size = sizeText(s.size)
		}
		if s.pid != 0 {
			pid = strconv.Itoa(s.pid)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", printable(s.Source), printable(s.Dir), size, pid, s.state)
	}
	return w.Flush()
}

func (a *app) statusJSON(list []mountStatus) error {
	doc := []any{}
	for _, s := range list {
		var size, pid any
		if s.sized {
			size = s.size
		}
		if s.pid != 0 {
			pid = s.pid
		}
		doc = append(doc, tensor.Object{
			{Key: "source", Value: s.Source}, {Key: "mountpoint", Value: s.Dir}, {Key: "size", Value: size},
			{Key: "pid", Value: pid}, {Key: "state", Value: s.state},
		})
	}
	_, err := fmt.Fprintf(a.out, "%s\n", tensor.AppendJSON(nil, doc))
	return err
}

// A fuseProcess holds /dev/fuse open.
type fuseProcess struct {
	pid         int
	connections []int    // since Linux 6.17
	args        []string // as paths, where they are some
}

type fuseProcesses []fuseProcess

// findServers looks through the processes that this user may look at.
func findServers() fuseProcesses {
	var list fuseProcesses
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		if fds := fuseDevices(proc); len(fds) > 0 {
			pid, _ := strconv.Atoi(filepath.Base(proc))
			list = append(list, fuseProcess{pid, connections(fds), arguments(proc)})
		}
	}
	return list
}

// of finds a mount's server: the kernel says, or it was started with the mount point as an argument.
func (l fuseProcesses) of(m fs.Mounted) int {
	named := 0
	for _, p := range l {
		for _, n := range p.connections {
			if n == m.Minor {
				return p.pid
			}
		}
		for _, arg := range p.args {
			if len(p.connections) == 0 && arg == m.Dir {
				named = p.pid
			}
		}
	}
	return named
}

// fuseDevices gives the fdinfo files of a process's FUSE devices.
func fuseDevices(proc string) []string {
	var infos []string
	fds, _ := os.ReadDir(proc + "/fd")
	for _, fd := range fds {
		if target, _ := os.Readlink(proc + "/fd/" + fd.Name()); target == "/dev/fuse" {
			infos = append(infos, proc+"/fdinfo/"+fd.Name())
		}
	}
	return infos
}

func connections(infos []string) []int {
	var list []int
	for _, info := range infos {
		f, err := os.Open(info)
		if err != nil {
			continue
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			var n int
			if _, err := fmt.Sscanf(s.Text(), "fuse_connection: %d", &n); err == nil {
				list = append(list, n)
			}
		}
		f.Close()
	}
	return list
}

func arguments(proc string) []string {
	cmdline, _ := os.ReadFile(proc + "/cmdline")
	cwd, _ := os.Readlink(proc + "/cwd")
	args := strings.Split(strings.TrimSuffix(string(cmdline), "\x00"), "\x00")
	for i, arg := range args {
		if !filepath.IsAbs(arg) {
			args[i] = filepath.Join(cwd, arg)
		}
	}
	return args
}
