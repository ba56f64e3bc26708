//go:build linux

package packaging

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// isolated runs a script in a mount namespace of its own, with the program and a checkpoint in $WORK.
func isolated(t *testing.T, prepare func(work string) []string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may try this")
	}
	if exec.Command("unshare", "--mount", "true").Run() != nil {
		t.Skip("no mount namespace can be had here")
	}
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skip("no FUSE here")
	} else {
		f.Close()
	}
	work := t.TempDir()
	openToAll(t, work)
	writeModel(t, work)
	program := filepath.Join(work, "bin", "weightfs")
	build := exec.Command("go", "build", "-o", program, "weightfs")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	private, err := filepath.Abs("../testdata/private.sh")
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--mount", "--propagation", "private", "sh", private}, prepare(work)...)
	cmd := exec.Command("unshare", args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "XDG_") })
	cmd.Env = append(cmd.Env, "WORK="+work, "WEIGHTFS="+program, "PATH="+filepath.Dir(program)+":/usr/sbin:/usr/bin:/sbin:/bin")
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 77 {
		t.Skipf("not here: %s", out)
	}
	if err != nil || strings.TrimSpace(string(out)) != "" {
		t.Errorf("%v\n%s", err, out)
	}
}

// openToAll lets another user reach what is in a directory of the test.
func openToAll(t *testing.T, dir string) {
	t.Helper()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func writeModel(t *testing.T, dir string) {
	t.Helper()
	header := `{"a":{"dtype":"F32","shape":[1000],"data_offsets":[0,4000]}}`
	data := make([]byte, 4000)
	for i := range data {
		data[i] = byte(i * 7)
	}
	model := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	for name, content := range map[string][]byte{"model.safetensors": append(model, data...), "want": data} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMountAndFstab(t *testing.T) {
	script, err := filepath.Abs("testdata/fstab.sh")
	if err != nil {
		t.Fatal(err)
	}
	isolated(t, func(work string) []string {
		sbin := filepath.Join(work, "sbin")
		if out, err := exec.Command("cp", "-a", "/sbin/.", sbin).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, name := range []string{"weightfs", "mount.weightfs", "mount.fuse.weightfs"} {
			link := filepath.Join(sbin, name)
			os.Remove(link)
			if err := os.Symlink(filepath.Join(work, "bin", "weightfs"), link); err != nil {
				t.Fatal(err)
			}
		}
		return []string{script, sbin}
	})
}

func TestUnitsRun(t *testing.T) {
	if _, err := os.Stat("/lib/systemd/systemd"); err != nil {
		t.Skip("no systemd here")
	}
	script, err := filepath.Abs("testdata/unit.sh")
	if err != nil {
		t.Fatal(err)
	}
	for unit, places := range map[string][]string{"system": {"/srv/models", "/mnt/tensors"}, "user": {"$HOME/models", "$HOME/tensors"}} {
		t.Run(unit, func(t *testing.T) {
			path, err := filepath.Abs("systemd/" + unit + "/weightfs@.service")
			if err != nil {
				t.Fatal(err)
			}
			isolated(t, func(string) []string { return append([]string{script, path}, places...) })
		})
	}
}
