package decode

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// Fused operations give other last bits than NumPy. Tests on one architecture do not see those of
// another, but its assembly shows them.
func TestNoFusedOperations(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the package for arm64")
	}
	cmd := exec.Command("go", "build", "-gcflags=-S", ".")
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("%v\n%s", err, out)
	}
	for _, line := range regexp.MustCompile(`.*\tFN?M(ADD|SUB)[SD]\t.*`).FindAll(out, -1) {
		t.Errorf("fused: %s", line)
	}
}
