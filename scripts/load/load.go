//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// A load is many clients at once.
type load struct {
	files   []file
	servers []int // process ids
	seconds time.Duration
	clients int
	limit   int // of the servers' memory, in MiB for each
	began   time.Time
	first   usage // when the servers have warmed up
}

// warmUp is when a server has what it needs: threads, buffers, what it unpacked.
const warmUp = time.Minute

func (l *load) run() error {
	if err := l.readWhole(); err != nil {
		return err
	}
	fmt.Printf("%d files\n\n| time | RssAnon | descriptors |\n|---|---|---|\n", len(l.files))
	l.sample("start")
	l.began = time.Now()
	clients := make([]*client, l.clients)
	var wg sync.WaitGroup
	for i := range clients {
		clients[i] = newClient(l.files, i, l.began.Add(l.seconds))
		wg.Go(clients[i].run)
	}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { l.watch(stop) })
	wg.Wait()
	close(stop)
	watching.Wait()
	time.Sleep(time.Second) // the last close(2) reaches the servers
	return errors.Join(l.report(clients), l.grown(l.sample("end")))
}

// readWhole reads every file from its beginning to its end.
func (l *load) readWhole() error {
	for _, f := range l.files {
		got, err := os.ReadFile(f.mounted)
		if err != nil {
			return err
		}
		want, err := os.ReadFile(f.want)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s differs from %s", f.mounted, f.want)
		}
	}
	return nil
}

// A usage is what the servers have together.
type usage struct{ rssAnon, descriptors int }

func (l *load) sample(when string) (u usage) {
	for _, pid := range l.servers {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, rest, _ := strings.Cut(string(status), "RssAnon:")
		var kib int
		fmt.Sscan(rest, &kib)
		u.rssAnon += kib
		fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		u.descriptors += len(fds)
	}
	fmt.Printf("| %s | %.1f MiB | %d |\n", when, float64(u.rssAnon)/1024, u.descriptors)
	return u
}

// watch samples early, when the servers have warmed up, and every minute.
func (l *load) watch(stop chan struct{}) {
	for next := 10 * time.Second; ; next = next.Truncate(warmUp) + warmUp {
		select {
		case <-stop:
			return
		case <-time.After(time.Until(l.began.Add(next))):
		}
		if u := l.sample(next.String()); next <= warmUp {
			l.first = u
		}
	}
}

// grown compares the end with the beginning. Go gives memory back when it likes, so of a long run only
// what is more than a quarter and 16 MiB counts, of a short one only the limit.
func (l *load) grown(end usage) error {
	if most := l.limit * len(l.servers); end.rssAnon>>10 > most {
		return fmt.Errorf("RssAnon is %d MiB, more than %d", end.rssAnon>>10, most)
	}
	if l.seconds >= 2*warmUp && end.rssAnon > l.first.rssAnon*5/4+16<<10 {
		return fmt.Errorf("RssAnon has grown from %d to %d KiB", l.first.rssAnon, end.rssAnon)
	}
	if l.seconds > warmUp/6 && end.descriptors > l.first.descriptors {
		return fmt.Errorf("there are %d descriptors, and were %d", end.descriptors, l.first.descriptors)
	}
	return nil
}

func (l *load) report(clients []*client) error {
	var took []time.Duration
	var bytes int64
	var failed []error
	for _, c := range clients {
		took = append(took, c.took...)
		bytes += c.bytes
		failed = append(failed, c.errors...)
	}
	if len(took) == 0 {
		return errors.Join(append(failed, errors.New("nothing was read"))...)
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1))].Round(time.Microsecond)
	}
	fmt.Print("\n| clients | seconds | reads | MB/s | p50 | p90 | p99 | p99.9 | longest | errors |\n|---|---|---|---|---|---|---|---|---|---|\n")
	fmt.Printf("| %d | %.0f | %d | %.0f | %v | %v | %v | %v | %v | %d |\n\n", l.clients, l.seconds.Seconds(), len(took),
		float64(bytes)/1e6/l.seconds.Seconds(), at(0.5), at(0.9), at(0.99), at(0.999), at(1), len(failed))
	for i, err := range failed[:min(len(failed), 20)] {
		fmt.Printf("%d: %v\n", i+1, err)
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d errors", len(failed))
	}
	return nil
}
