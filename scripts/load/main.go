//go:build linux

// Command load makes checkpoints of every format, and reads mounts of them as many clients do. It is
// called by load.sh, which builds and mounts what it needs.
//
//	load make DIR                                  writes a checkpoint of each format, and what raw/ must show
//	load read SECONDS CLIENTS LIMIT PID... -- MOUNT=WANT...
//
// `read` compares random ranges of every file below each WANT with those of the same file of the mount,
// and watches the descriptors of the servers and their memory, at most LIMIT MiB for each. The last line
// that is printed is "ok", or says what is wrong.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Println("failed:", err)
		return
	}
	fmt.Println("ok")
}

func run(args []string) error {
	sep := slices.Index(args, "--")
	switch {
	case len(args) == 2 && args[0] == "make":
		return makeAll(args[1])
	case len(args) > 4 && args[0] == "read" && sep > 4:
		return read(args[1:sep], args[sep+1:])
	}
	return errors.New("load make DIR, or load read SECONDS CLIENTS LIMIT PID... -- MOUNT=WANT ...: wrong usage")
}

func read(numbers, pairs []string) error {
	var n []int
	for _, s := range numbers {
		i, err := strconv.Atoi(s)
		if err != nil {
			return err
		}
		n = append(n, i)
	}
	var files []file
	for _, pair := range pairs {
		mount, want, _ := strings.Cut(pair, "=")
		found, err := filesOf(mount, want)
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	l := &load{files: files, seconds: time.Duration(n[0]) * time.Second, clients: n[1], limit: n[2], servers: n[3:]}
	return l.run()
}
