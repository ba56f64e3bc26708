//go:build linux

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// crowd maps a file in 64 threads at once, each of which touches every page and then drops its map, as
// numpy.load does with mmap_mode="r". It prints the sums of bytes that the threads saw.
func crowd(path string) {
	const threads = 64
	debug.SetGCPercent(-1) // it would wait for threads that wait for pages
	runtime.GOMAXPROCS(2 * threads)
	sums := make([]uint64, threads)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range threads {
		wg.Go(func() {
			runtime.LockOSThread()
			<-start
			sums[i] = touch(path)
		})
	}
	close(start)
	wg.Wait()
	for _, s := range sums {
		fmt.Println(s)
	}
}

func touch(path string) (sum uint64) {
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return 0
	}
	b, err := unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0
	}
	defer unix.Munmap(b)
	for i := 0; i < len(b); i += 512 {
		sum = sum*31 + uint64(b[i])
	}
	return sum
}

// Many threads that map one file at once, and fault on its pages, must not wait for each other for ever:
// the kernel then asks for more pages than the server has threads.
func TestMappedByMany(t *testing.T) {
	c := newCheckpoint(t, t.TempDir())
	paths := []string{"npy/a/m.big.npy", "f32/a/m.half.npy", "assembled/model.safetensors"}
	want := contents(t, c.dir, paths...)
	for _, procs := range []string{"1", "16"} {
		t.Run("GOMAXPROCS="+procs, func(t *testing.T) {
			s := newServer(t)
			s.env = append(s.env, "GOMAXPROCS="+procs)
			s.mount(c.dir)
			for _, path := range paths {
				begin := time.Now()
				quickly(t, path, func() { checkCrowd(t, s.at(path), want[path]) })
				t.Logf("%s: %v", path, time.Since(begin))
			}
			s.umount()
		})
	}
}

func checkCrowd(t *testing.T, path string, want []byte) {
	var sum uint64
	for i := 0; i < len(want); i += 512 {
		sum = sum*31 + uint64(want[i])
	}
	cmd := exec.Command("/proc/self/exe", path)
	cmd.Env = append(os.Environ(), roleVar+"=crowd", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.Output()
	if n := strings.Count(string(out), fmt.Sprint(sum)+"\n"); err != nil || n != 64 {
		t.Errorf("%s: %d threads of 64 saw the right bytes; %v", path, n, err)
	}
}
