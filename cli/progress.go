package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// A progress shows a person at a terminal how far long work has come, on standard error; to anybody
// else it shows nothing. A nil progress does nothing.
type progress struct {
	bars *mpb.Progress
	bar  *mpb.Bar
}

// progress begins to show work on so many bytes.
func (a *app) progress(name string, total int64) *progress {
	if a.quiet || !onTerminal(a.err) || total == 0 {
		return nil
	}
	bars := mpb.New(mpb.WithOutput(a.err))
	bar := bars.AddBar(total,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(printable(name)+" ")),
		mpb.AppendDecorators(
			decor.CountersKibiByte("% .1f / % .1f"),
			decor.AverageSpeed(decor.SizeB1024(0), "  % .1f"),
			decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8}),
		),
	)
	return &progress{bars, bar}
}

// add tells that n more bytes are done.
func (p *progress) add(n int64) {
	if p != nil {
		p.bar.IncrInt64(n)
	}
}

// print writes a line to out without spoiling what the terminal shows.
func (p *progress) print(out io.Writer, line string) {
	if f, ok := out.(*os.File); p != nil && ok && term.IsTerminal(int(f.Fd())) {
		out = p.bars
	}
	fmt.Fprintln(out, line)
}

// end takes the bar away.
func (p *progress) end() {
	if p != nil {
		p.bar.Abort(true)
		p.bars.Wait()
	}
}
