//go:build linux

package cli

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestThreshold(t *testing.T) {
	for _, tt := range []struct {
		flags logFlags
		quiet bool
		want  slog.Level
	}{
		{logFlags{}, false, slog.LevelInfo},
		{logFlags{}, true, slog.LevelError},
		{logFlags{level: "warn"}, true, slog.LevelWarn},
		{logFlags{level: "error", verbose: true}, true, slog.LevelDebug},
		{logFlags{level: "debug"}, false, slog.LevelDebug},
	} {
		if got := tt.flags.threshold(tt.quiet); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.flags, got, tt.want)
		}
	}
}

// The journal has the time and the level itself.
func TestJournalLines(t *testing.T) {
	var b bytes.Buffer
	f := logFlags{format: "text"}
	log := slog.New(f.leveled(slog.LevelInfo, journalLine(&b))).With("dir", "/mnt").WithGroup("g")
	log.Debug("no")
	log.Info("mounted", "tensors", 6)
	log.Warn("in use")
	log.Error("bad")
	want := strings.Join([]string{
		`<6>msg=mounted dir=/mnt g.tensors=6`, `<4>msg="in use" dir=/mnt`, `<3>msg=bad dir=/mnt`, "",
	}, "\n")
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}
