//go:build linux

package fs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"weightfs/format"
)

// BenchmarkMount reads 256 MiB with dd(1): from the shard itself, through a mount whose pages the
// kernel does not have, and again when it has them. The shard lies in memory, so that no disk is
// measured; run it with -count, and compare rows of one run only.
func BenchmarkMount(b *testing.B) {
	needFUSE(b)
	tmp, err := os.MkdirTemp("/dev/shm", "weightfs-bench")
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() { os.RemoveAll(tmp) })
	const size = 256 << 20
	path := filepath.Join(tmp, "shard")
	if err := os.WriteFile(path, noise(size), 0o644); err != nil {
		b.Fatal(err)
	}
	s, err := format.OpenShard("shard", path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	_, mnt := mount(b, dir("f", shardFile(s)), Options{})
	for _, bm := range []struct {
		name, path, block string
		cold              bool
	}{
		{"shard/1M", path, "1M", false},
		{"cold/1M", mnt + "/f", "1M", true},
		{"cold/128K", mnt + "/f", "128K", true},
		{"warm/1M", mnt + "/f", "1M", false},
		{"warm/128K", mnt + "/f", "128K", false},
	} {
		b.Run(bm.name, func(b *testing.B) {
			c := newClient(b)
			fd := c.open(bm.path)
			b.SetBytes(size)
			for b.Loop() {
				if bm.cold {
					b.StopTimer()
					c.must("drop", fd)
					b.StartTimer()
				}
				if err := exec.Command("dd", "if="+bm.path, "of=/dev/null", "bs="+bm.block, "status=none").Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReply is the handler alone: one allocation, and one fstat(2) of the shard.
func BenchmarkReply(b *testing.B) {
	s := openShard(b, noise(2<<20))
	f := file(format.Literal(noise(128)), format.Range(s, 0, s.Size()))
	h := &handle{tree: &tree{}, file: f, content: f, size: f.Size()}
	dest := make([]byte, maxRequest)
	b.ReportAllocs()
	for b.Loop() {
		if _, errno := h.Read(context.Background(), dest, 8192); errno != 0 {
			b.Fatal(errno)
		}
	}
}
