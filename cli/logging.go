//go:build linux

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"log/syslog"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// logFlags say where the server's messages go and which.
type logFlags struct {
	file    string
	format  string
	level   string
	verbose bool
}

func (f *logFlags) add(c *cobra.Command) {
	f.format, f.level = "text", ""
	fl := c.Flags()
	fl.StringVar(&f.file, "log-file", "", "append messages to this `file` (else standard error with -f, and syslog in the background)")
	fl.Var(choice{&f.format, []string{"text", "json"}}, "log-format", "text or json")
	fl.Var(choice{&f.level, []string{"debug", "info", "warn", "error"}}, "log-level", "debug, info, warn or error (default info)")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "the same as --log-level=debug: every request")
}

// choice is one word of a few.
type choice struct {
	value *string
	of    []string
}

func (c choice) Type() string { return "word" }

func (c choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

func (c choice) Set(s string) error {
	if !slices.Contains(c.of, s) {
		return fmt.Errorf("not one of %s", strings.Join(c.of, ", "))
	}
	*c.value = s
	return nil
}

// threshold is the lowest level that is logged.
func (f *logFlags) threshold(quiet bool) slog.Level {
	level := slog.LevelInfo
	switch {
	case f.verbose:
		level = slog.LevelDebug
	case f.level != "":
		level.UnmarshalText([]byte(f.level))
	case quiet:
		level = slog.LevelError
	}
	return level
}

// logger opens the log. file is where the runtime's last words go when there is a log file.
func (m *mounting) logger() (log *slog.Logger, file *os.File, err error) {
	level := m.threshold(m.quiet && m.foreground)
	switch {
	case m.file != "":
		file, err = os.OpenFile(m.file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
		if err != nil {
			return nil, nil, failf(exitTrouble, "log file: %w", err)
		}
		return slog.New(m.handler(file, level, false)), file, nil
	case m.foreground && toJournal(m.err):
		return slog.New(m.leveled(level, journalLine(m.err))), nil, nil
	case m.foreground:
		return slog.New(m.handler(m.err, level, false)), nil, nil
	}
	w, err := syslog.New(syslog.LOG_DAEMON, "weightfs")
	if err != nil { // a container, mostly
		return slog.New(slog.DiscardHandler), nil, nil
	}
	return slog.New(m.leveled(level, syslogLine(w))), nil, nil
}

// handler prints records in the wanted format; bare ones lack the time and the level, which
// journal and syslog have themselves.
func (f *logFlags) handler(w io.Writer, level slog.Level, bare bool) slog.Handler {
	opt := &slog.HandlerOptions{Level: level}
	if bare {
		opt.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
				return slog.Attr{}
			}
			return a
		}
	}
	if f.format == "json" {
		return slog.NewJSONHandler(w, opt)
	}
	return slog.NewTextHandler(w, opt)
}

// toJournal tells whether systemd reads w.
func toJournal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("JOURNAL_STREAM") == "" {
		return false
	}
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && os.Getenv("JOURNAL_STREAM") == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// A lineSink takes a printed record with its level.
type lineSink func(level slog.Level, line string) error

// leveledHandler hands on what another handler prints, with the level.
type leveledHandler struct {
	slog.Handler
	lines *lineBuffer
	sink  lineSink
}

type lineBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (f *logFlags) leveled(level slog.Level, sink lineSink) slog.Handler {
	b := &lineBuffer{}
	return leveledHandler{f.handler(b, level, true), b, sink}
}

func (h leveledHandler) Handle(ctx context.Context, r slog.Record) error {
	h.lines.mu.Lock()
	defer h.lines.mu.Unlock()
	h.lines.Reset()
	if err := h.Handler.Handle(ctx, r); err != nil {
		return err
	}
	return h.sink(r.Level, h.lines.String())
}

func (h leveledHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return leveledHandler{h.Handler.WithAttrs(attrs), h.lines, h.sink}
}

func (h leveledHandler) WithGroup(name string) slog.Handler {
	return leveledHandler{h.Handler.WithGroup(name), h.lines, h.sink}
}

// journalLine prefixes the priority as sd-daemon(3) has it.
func journalLine(w io.Writer) lineSink {
	return func(level slog.Level, line string) error {
		_, err := fmt.Fprintf(w, "<%d>%s", priority(level), line)
		return err
	}
}

func syslogLine(w *syslog.Writer) lineSink {
	return func(level slog.Level, line string) error {
		switch priority(level) {
		case syslog.LOG_ERR:
			return w.Err(line)
		case syslog.LOG_WARNING:
			return w.Warning(line)
		case syslog.LOG_INFO:
			return w.Info(line)
		}
		return w.Debug(line)
	}
}

func priority(level slog.Level) syslog.Priority {
	switch {
	case level >= slog.LevelError:
		return syslog.LOG_ERR
	case level >= slog.LevelWarn:
		return syslog.LOG_WARNING
	case level >= slog.LevelInfo:
		return syslog.LOG_INFO
	}
	return syslog.LOG_DEBUG
}
