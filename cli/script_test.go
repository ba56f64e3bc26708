//go:build linux

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"weightfs/fs"
	"weightfs/sandbox"
)

// The scripts run the program as a command. What they find in $WORK is made by fixture_test.go;
// $TESTDATA is the module's testdata.

func TestMain(m *testing.M) {
	program := func() { os.Exit(Main(os.Args)) }
	testscript.Main(m, map[string]func(){
		"weightfs":            program,
		"mount.weightfs":      program,
		"mount.fuse.weightfs": program,
	})
}

func TestScripts(t *testing.T) {
	if signal.Ignored(unix.SIGHUP) {
		// Tests that were started by nohup(1): what ignores the signal would pass that on to every server.
		signal.Notify(make(chan os.Signal, 1), unix.SIGHUP)
	}
	testdata, err := filepath.Abs("../testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("TESTDATA", testdata)
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, ".cache"))
			e.Defer(func() { leftovers(e) })
			return writeFixtures(e.WorkDir)
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"mounted": mounted,
			"gone":    gone,
			"signal":  signalServer,
			"notify":  notify,
		},
	})
}

// condition: [fuse] mounts work here; [root]; [private] a mount namespace of our own can be had;
// [landlock] a server can be confined; [race] the program has the race detector, and its memory.
func condition(cond string) (bool, error) {
	switch cond {
	case "fuse":
		f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
		f.Close()
		return err == nil, nil
	case "root":
		return os.Geteuid() == 0, nil
	case "landlock":
		return sandbox.Version() > 0, nil
	case "race":
		info, _ := debug.ReadBuildInfo()
		return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}), nil
	case "private":
		return exec.Command("unshare", "-m", "true").Run() == nil, nil
	}
	return false, errors.New("unknown condition")
}

// exits CODE PROGRAM ARG...: the program ends with that code, and tells a failure in one line.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
	if lines := failureLines(ts.ReadFile("stderr")); code > exitNo && lines != 1 {
		ts.Fatalf("%d lines of failure, want 1", lines)
	}
}

func failureLines(stderr string) int {
	n := 0
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "warning: ") {
			n++
		}
	}
	return n
}

// eventually waits for what happens in another process: ten seconds in ticks, which come late as well
// where the machine has no time for that process.
func eventually(ok func() bool) bool {
	const tick = 5 * time.Millisecond
	for range 10 * time.Second / tick {
		if ok() {
			return true
		}
		time.Sleep(tick)
	}
	return ok()
}

// [!] mounted DIR: it is, or will be in a moment; with ! it is not.
func mounted(ts *testscript.TestScript, neg bool, args []string) {
	is := func() bool {
		m, ok, err := fs.Find(ts.MkAbs(args[0]))
		return err == nil && ok && m.Ours()
	}
	if neg == is() && (neg || !eventually(is)) {
		ts.Fatalf("mounted: %t", is())
	}
}

// gone DIR: nothing is mounted there, and no server runs any more, now or in a moment.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	dir := ts.MkAbs(args[0])
	var there bool
	var left []process
	if !eventually(func() bool {
		_, there, _ = fs.Find(dir)
		left = slices.DeleteFunc(scriptProcesses(ts.Getenv("WORK")), func(p process) bool { return !p.has(dir) })
		return !there && len(left) == 0
	}) {
		ts.Fatalf("%s: mounted: %t, processes: %v, in the namespaces of %v", args[0], there, left, withMount(dir))
	}
}

// withMount are the processes that have a mount in their namespace: the server of one that was detached
// here lives until it is gone there as well.
func withMount(dir string) (pids []string) {
	tables, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	for _, table := range tables {
		b, _ := os.ReadFile(table)
		if bytes.Contains(b, []byte(" "+dir+" ")) {
			pids = append(pids, filepath.Base(filepath.Dir(table)))
		}
	}
	return pids
}

// signal NAME ARG [keeper]: to the weightfs that was started with that argument; in the background, where
// server and keeper have the absolute mount point, to the server, or the keeper.
func signalServer(ts *testscript.TestScript, neg bool, args []string) {
	sig := unix.SignalNum("SIG" + args[0])
	if sig == 0 {
		ts.Fatalf("no signal %s", args[0])
	}
	if !eventually(func() bool {
		for _, p := range scriptProcesses(ts.Getenv("WORK")) {
			if filepath.Base(p.args[0]) == "weightfs" && p.has(args[1]) && p.keeper() == (len(args) == 3) && unix.Kill(p.pid, sig) == nil {
				return sig != unix.SIGSTOP || eventually(p.stopped)
			}
		}
		return false
	}) {
		ts.Fatalf("no weightfs %s", args[1])
	}
}

// notify listen: opens $NOTIFY_SOCKET. notify WORDS: the next message to it has these words.
func notify(ts *testscript.TestScript, neg bool, args []string) {
	if args[0] == "listen" {
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: ts.MkAbs("notify"), Net: "unixgram"})
		ts.Check(err)
		ts.Defer(func() { conn.Close() })
		ts.Setenv("NOTIFY_SOCKET", ts.MkAbs("notify"))
		listeners[ts.Name()] = conn
		return
	}
	b := make([]byte, 4096)
	conn := listeners[ts.Name()]
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, err := conn.Read(b)
	ts.Check(err)
	if !strings.Contains(string(b[:n]), args[0]) {
		ts.Fatalf("message %q", b[:n])
	}
}

var listeners = map[string]*net.UnixConn{} // by script; one script uses it

// A process that a script started, directly or not.
type process struct {
	pid  int
	args []string
}

func (p process) has(arg string) bool { return slices.Contains(p.args, arg) }

// keeper tells the keeper in the background.
func (p process) keeper() bool {
	comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.pid))
	return string(comm) == keeperName+"\n"
}

// stopped tells whether every thread is: one may still take a request after the signal was sent.
func (p process) stopped() bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.pid))
	for _, path := range stats {
		stat, _ := os.ReadFile(path)
		if !bytes.Contains(stat, []byte(") T ")) {
			return false
		}
	}
	return true
}

// scriptProcesses finds them by the $WORK in their environment.
func scriptProcesses(work string) []process {
	var list []process
	envs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range envs {
		env, _ := os.ReadFile(path)
		if !slices.Contains(strings.Split(string(env), "\x00"), "WORK="+work) {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Dir(path) + "/cmdline")
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if cmdline = bytes.TrimSuffix(cmdline, []byte{0}); len(cmdline) > 0 {
			list = append(list, process{pid, strings.Split(string(cmdline), "\x00")})
		}
	}
	return list
}

// leftovers fails a script that leaves a mount or a process behind, and clears them away.
func leftovers(e *testscript.Env) {
	var left []string
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		dir := strings.Fields(line)[1]
		if strings.HasPrefix(dir, e.WorkDir+"/") {
			left = append(left, "mount "+dir)
			defer fs.Detach(dir)
		}
	}
	if len(left) > 0 || !eventually(func() bool { return len(scriptProcesses(e.WorkDir)) == 0 }) {
		for _, p := range scriptProcesses(e.WorkDir) {
			left = append(left, "process "+strings.Join(p.args, " "))
			syscall.Kill(p.pid, syscall.SIGKILL)
			syscall.Kill(p.pid, syscall.SIGCONT)
		}
	}
	if len(left) > 0 {
		e.T().Log("left behind: " + strings.Join(left, "; "))
		e.T().FailNow()
	}
}
