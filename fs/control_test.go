//go:build linux

package fs

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A Control of a mount that another process serves does what the server's own does.
func TestControl(t *testing.T) {
	cmd, mnt := otherServer(t)
	m, ok, err := Find(mnt)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	c := NewControl(ID{m.Dir, uint32(m.Minor)}, ended, slog.New(slog.DiscardHandler))
	if err := c.Clear(); err != nil {
		t.Error(err)
	}
	user := newClient(t)
	fd := user.open(mnt + "/README.txt")
	if err := c.Unmount(); !errors.Is(err, ErrBusy) {
		t.Errorf("in use: %v", err)
	}
	user.must("close", fd)
	if err := c.Unmount(); err != nil {
		t.Error(err)
	}
	cmd.Process.Signal(unix.SIGTERM)
	<-c.Done()
	if _, ok, _ := Find(mnt); ok {
		t.Error("still mounted")
	}
	if err := c.Clear(); err != nil {
		t.Errorf("no mount: %v", err)
	}
}

func TestControlClears(t *testing.T) {
	cmd, mnt := otherServer(t)
	m, _, err := Find(mnt)
	if err != nil {
		t.Fatal(err)
	}
	c := NewControl(ID{m.Dir, uint32(m.Minor)}, nil, slog.New(slog.DiscardHandler))
	wrong := NewControl(ID{m.Dir, uint32(m.Minor) + 1}, nil, slog.New(slog.DiscardHandler))
	cmd.Process.Kill()
	cmd.Wait()
	if err := wrong.Clear(); err != nil {
		t.Error(err)
	}
	if stale, err := Stale(mnt); !stale || err != nil {
		t.Errorf("another mount was cleared: %v", err)
	}
	if err := c.Clear(); err != nil {
		t.Error(err)
	}
	if _, ok, _ := Find(mnt); ok {
		t.Error("still mounted")
	}
}

// What must be done before the first answer is done when nobody has got one.
func TestConfine(t *testing.T) {
	seen := &counter{}
	confined := false
	_, mnt := mount(t, dir("f", text("x")), Options{Observer: seen, Confine: func() { confined = true }})
	if !confined || seen.opened.Load() != 0 {
		t.Errorf("confined %t after %d files were opened", confined, seen.opened.Load())
	}
	newClient(t).must("stat", mnt+"/f")
}

// A directory above the mount point is renamed: who ends the mount must find it, also where it learnt of
// the mount only then.
func TestRenamedAbove(t *testing.T) {
	for name, c := range map[string]struct {
		killed, late bool
		end          func(c *Control) error
	}{
		"in order":       {false, false, (*Control).Unmount},
		"in order, late": {false, true, (*Control).Unmount},
		"killed":         {true, false, (*Control).Clear},
		"killed, late":   {true, true, (*Control).Clear},
	} {
		t.Run(name, func(t *testing.T) {
			needFUSE(t)
			was, is := filepath.Join(t.TempDir(), "was"), filepath.Join(t.TempDir(), "is")
			mnt := filepath.Join(was, "mnt")
			if err := os.MkdirAll(mnt, 0o755); err != nil {
				t.Fatal(err)
			}
			cmd, mnt := otherServerAt(t, mnt)
			m, _, err := Find(mnt)
			if err != nil {
				t.Fatal(err)
			}
			id := ID{m.Dir, uint32(m.Minor)}
			control := NewControl(id, nil, slog.New(slog.DiscardHandler))
			defer control.close()
			if err := os.Rename(was, is); err != nil {
				t.Fatal(err)
			}
			if c.late {
				control = NewControl(id, nil, slog.New(slog.DiscardHandler))
			}
			if c.killed {
				cmd.Process.Kill()
				cmd.Wait()
			}
			if err := c.end(control); err != nil {
				t.Error(err)
			}
			if m, ok, _ := Find(filepath.Join(is, "mnt")); ok {
				t.Errorf("left: %+v", m)
				m.detach()
			}
		})
	}
}
