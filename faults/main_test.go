//go:build linux

package faults

import (
	"log"
	"os"
	"path/filepath"
	"testing"

	"weightfs/cli"
)

// The program is this test once more, called weightfs; other parts that must be processes of their own
// are told by a variable.

const roleVar = "WEIGHTFS_TEST_ROLE"

// program is the path by which this test is weightfs.
var program string

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVar); {
	case filepath.Base(os.Args[0]) == "weightfs":
		os.Exit(cli.Main(os.Args))
	case role == "disk":
		serveDisk(os.Args[1], os.Args[2], os.Args[3] == "direct")
	case role == "crowd":
		crowd(os.Args[1])
	default:
		os.Exit(run(m))
	}
}

func run(m *testing.M) int {
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "weightfs-faults")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "weightfs")
	if err := os.Symlink(self, program); err != nil {
		log.Fatal(err)
	}
	return m.Run()
}
