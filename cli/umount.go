//go:build linux

package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weightfs/fs"
)

func (a *app) umount() *cobra.Command {
	var lazy, all bool
	c := &cobra.Command{
		Use:     "umount MOUNTPOINT... | --all",
		Aliases: []string{"unmount"},
		Short:   "Unmount what weightfs mounted",
		Long: `Unmount what weightfs mounted, and nothing else. A mount in use stays, and who uses it is named;
--lazy takes it out of sight at once, and files that are open there can be read on. --all is every
mount that you made, and prints each that it took away.`,
		Args: func(c *cobra.Command, args []string) error {
			if all {
				return exactly(0, "no MOUNTPOINT with --all")(c, args)
			}
			return between(1, 0, "at least one MOUNTPOINT")(c, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if all {
				return a.umountAll(lazy)
			}
			return a.runUmount(args, lazy, nil)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			if all {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return mountPoints(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.Flags().BoolVarP(&lazy, "lazy", "l", false, "detach a mount that is in use")
	c.Flags().BoolVarP(&all, "all", "a", false, "unmount everything that you mounted with weightfs")
	return c
}

func mountPoints() []string {
	var dirs []string
	list, _ := fs.Mounts()
	for _, m := range list {
		dirs = append(dirs, m.Dir)
	}
	return dirs
}

// umountAll begins with the last mount: it may lie upon another, or in one.
func (a *app) umountAll(lazy bool) error {
	list, err := fs.Mounts()
	if err != nil {
		return err
	}
	var dirs []string
	for _, m := range list {
		if m.UID == os.Geteuid() {
			dirs = append(dirs, m.Dir)
		}
	}
	if len(dirs) == 0 && !a.quiet {
		_, err := fmt.Fprintln(a.out, "nothing is mounted")
		return err
	}
	slices.Reverse(dirs)
	return a.runUmount(dirs, lazy, func(dir string) {
		if !a.quiet {
			fmt.Fprintln(a.out, "unmounted "+printable(dir))
		}
	})
}

// runUmount tries every one, tells of those that are done, and has the exit code of the first failure.
func (a *app) runUmount(dirs []string, lazy bool, done func(dir string)) error {
	paths, faults := make([]string, len(dirs)), make([]error, len(dirs))
	for i, dir := range dirs {
		paths[i], faults[i] = absolute(dir)
	}
	os.Chdir("/") // we may have been started in a mount, which would be in use by us
	var first error
	for i, dir := range paths {
		err := faults[i]
		if err != nil {
			err = failf(exitMountPoint, "mount point %w", err)
		} else {
			err = unmount(dir, lazy)
		}
		if err == nil && done != nil {
			done(dir)
		}
		if err != nil {
			code := a.report(err)
			if first == nil {
				first = reported{code}
			}
		}
	}
	return first
}

func unmount(dir string, lazy bool) error {
	there, ok, err := fs.Find(dir)
	switch {
	case err != nil:
		return failf(exitMountPoint, "%s: %w", dir, cause(err))
	case !ok:
		return failf(exitMountPoint, "%s: nothing is mounted there (weightfs status lists the mounts)", dir)
	case !there.Ours():
		return failf(exitStale, "%s: a mount of type %s, not of weightfs", dir, there.Type)
	case os.Geteuid() != 0 && there.UID != os.Geteuid():
		return failf(exitStale, "%s: mounted by user %d, who can unmount it", dir, there.UID)
	}
	if lazy {
		if err := fs.Detach(dir); err != nil && !vanished(there) {
			return err
		}
		return nil
	}
	server := findServers().of(there)
	if err := unmountPatiently(dir); err != nil && !vanished(there) {
		return err
	}
	if !elsewhere(there) {
		waitForEnd(server)
	}
	return nil
}

// vanished tells that a mount which was there is not any more: somebody else unmounted it as well.
func vanished(m fs.Mounted) bool {
	now, ok, err := fs.Find(m.Dir)
	return err == nil && (!ok || now.Major != m.Major || now.Minor != m.Minor)
}

// unmountPatiently tries a few times while nobody is to be seen who uses the mount: the kernel may
// learn a moment late that the last file was closed. It tries for a second while only we do: `weightfs status`
// looks into a mount for a moment.
func unmountPatiently(dir string) error {
	unseen := 0
	for try := 0; ; try++ {
		err := fs.Unmount(dir)
		if !errors.Is(err, fs.ErrBusy) {
			return err
		}
		if stale, _ := fs.Stale(dir); stale {
			return fs.Clear(dir)
		}
		users, _ := fs.Busy(dir)
		users = slices.DeleteFunc(users, func(u fs.User) bool { return u.PID == os.Getpid() })
		if len(users) == 0 {
			unseen++
		}
		if unseen == 5 || try == 20 || slices.ContainsFunc(users, func(u fs.User) bool { return u.Command != "weightfs" }) {
			return busy(dir, users)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// elsewhere tells that the file system is mounted at another place as well, and so goes on.
func elsewhere(m fs.Mounted) bool {
	list, err := fs.Mounts()
	return err != nil || slices.ContainsFunc(list, func(o fs.Mounted) bool { return o.Major == m.Major && o.Minor == m.Minor })
}

// waitForEnd lets a server close the checkpoint's files before its user goes on, if that takes no time.
func waitForEnd(pid int) {
	if pid == 0 {
		return
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 1000)
}
