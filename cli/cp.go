package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"weightfs/format"
	"weightfs/transfer"
)

func (a *app) cp() *cobra.Command {
	var f openFlags
	cp := &copying{app: a}
	c := &cobra.Command{
		Use:        "cp [-r] SOURCE TENSOR|PATH... DEST",
		SuggestFor: []string{"copy", "extract", "convert", "export"},
		Short:      "Copy tensors, files or whole views out of a checkpoint, without a mount",
		Long: `Copy tensors, files or whole views out of a checkpoint, without a mount. Each argument is tried as a
tensor's name first (copied as NAME.raw), then as a path of the tree that weightfs mount shows:

  weightfs cp model/ parts/model/layers/3.safetensors layer3.safetensors
  weightfs cp -r model/ npy out/                       every tensor as a .npy file
  weightfs cp -r model.gguf assembled out --map llama.cpp --as-safetensors=f32
  weightfs cp -r training/ assembled out --exclude '*optim*'

DEST is a directory or, for one argument, a new name, as with cp(1). With --resume the same command goes
on in the same place: where DEST is a directory's copy, or part of one, that copy is gone on with and
none is made in it. Links of the tree are copied as what they lead to. A file is there whole or not at
all. Nothing is written into the checkpoint's directory.`,
		Args: between(3, 0, "SOURCE, at least one TENSOR or PATH, and DEST"),
		RunE: func(_ *cobra.Command, args []string) error {
			if args[len(args)-1] == "" {
				return usageError("DEST is empty")
			}
			cp.source = args[0]
			return f.withCheckpoint(cp.run)(nil, args)
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			list, _ := f.completeTensors(-1)(c, args, word)
			return list, cobra.ShellCompDirectiveDefault // DEST is a file
		},
	}
	f.add(c)
	c.Flags().Var(asF32{&f.opt.AsF32}, "as-safetensors", "write types that safetensors lacks into assembled/ and parts/ as f32, not as bytes")
	c.Flags().BoolVarP(&cp.recursive, "recursive", "r", false, "copy directories")
	c.Flags().BoolVar(&cp.opt.Resume, "resume", false, "leave out files that are there with the same size and time, go on with one that is unfinished, and keep it when this copy ends early")
	c.Flags().BoolVar(&cp.opt.Verify, "verify", false, "read every copy back and compare its SHA-256 with that of what was read")
	return c
}

// A copying is one call of cp.
type copying struct {
	*app
	source    string // as it was named
	recursive bool
	opt       transfer.Options

	checkpoint *format.Checkpoint
	tree       format.Dir
	guard      guard
	copier     *transfer.Copier
	report     *copyReport
}

func (cp *copying) run(c *format.Checkpoint, args []string) error {
	cp.checkpoint, cp.tree = c, c.Root()
	cp.opt.Version = version()
	last := len(args) - 1
	items, err := cp.plan(args[:last], args[last])
	if err != nil {
		return err
	}
	total, err := cp.survey(items)
	if err != nil {
		return err
	}
	if cp.opt.Verify {
		total *= 2
	}
	meter := &copyMeter{progress: cp.progress("cp", total), total: total}
	cp.opt.Meter = meter
	cp.copier = transfer.New(cp.opt)
	cp.report = cp.newReport()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	defer stop()
	err = cp.told(ctx, cp.copyAll(ctx, items))
	meter.end()
	if rerr := cp.report.close(err); err == nil {
		err = rerr
	}
	return err
}

// smallCopy is the size up to which several files are copied side by side; a larger one is by itself
// on all cores.
const (
	smallCopy = 4 << 20
	copyJobs  = 4
)

func (cp *copying) copyAll(ctx context.Context, items []copyItem) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(copyJobs)
	for _, item := range items {
		err := cp.walk(item, func(item copyItem) error {
			file, ok := item.node.(format.File)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case !ok:
				return cp.guard.mkdir(item.to)
			case file.Stat().Size > smallCopy:
				return cp.copyFile(ctx, item, file)
			}
			group.Go(func() error { return cp.copyFile(ctx, item, file) })
			return nil
		})
		if err != nil {
			group.Go(func() error { return err })
			break
		}
	}
	if err := group.Wait(); err != nil {
		cp.guard.rmdirs()
		return err
	}
	return cp.copier.Finish()
}

func (cp *copying) copyFile(ctx context.Context, item copyItem, file format.File) error {
	to, err := cp.guard.target(item.to)
	if err != nil {
		return err
	}
	outcome, err := cp.copier.File(ctx, file, to)
	if err != nil {
		return err
	}
	cp.report.add(item, outcome)
	return nil
}

// told gives a failure its exit code and its hint.
func (cp *copying) told(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	write, _ := errors.AsType[*transfer.WriteError](err)
	switch {
	case ctx.Err() != nil && cp.opt.Resume:
		return failf(exitInterrupted, "interrupted (the same command goes on)")
	case ctx.Err() != nil:
		return failf(exitInterrupted, "interrupted")
	case write == nil:
		return err
	case write.Kept > 0:
		return failf(exitTrouble, "%w (%s of it are kept, the same command goes on)", err, sizeText(uint64(write.Kept)))
	case write.Full() && !cp.opt.Resume:
		return failf(exitTrouble, "%w (with --resume what is written of a large file would be kept)", err)
	}
	return failf(exitTrouble, "%w", err)
}

// copyMeter shows the progress.
type copyMeter struct {
	progress *progress
	mu       sync.Mutex
	total    int64
}

func (m *copyMeter) Done(n int64) { m.progress.add(n) }

// Spared makes the whole smaller: the rate and the time left are those of the work that is done.
func (m *copyMeter) Spared(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total -= n
	m.progress.resize(m.total)
}

// resize tells that there is more or less to do.
func (p *progress) resize(total int64) {
	if p != nil && total > 0 {
		p.bar.SetTotal(total, false)
	}
}

func (m *copyMeter) end() { m.progress.end() }
