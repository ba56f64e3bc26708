//go:build linux

package cli

import (
	"log/slog"

	"weightfs/format"
	"weightfs/metrics"
)

// observe tells the log of every checkpoint that is opened and, with --metrics-addr, counts what the
// mount does.
func (m *mounting) observe(log *slog.Logger) *metrics.Metrics {
	var counts *metrics.Metrics
	if m.metricsAddr != "" {
		counts = metrics.New(Version)
		m.fs.Observer = counts
	}
	m.openFlags.opened = func(c *format.Checkpoint) {
		facts := []any{"source", c.Source, "format", c.Format, "tensors", c.Len(), "took", c.Took, "from_index", c.FromIndex}
		if c.Missed != "" {
			facts = append(facts, "reason", c.Missed)
		}
		log.Debug("opened", facts...)
		if counts != nil {
			counts.CheckpointOpened(c)
		}
	}
	return counts
}

// showMetrics serves the counts until done is called. An address that cannot be had is a warning: the
// mount is of use without them.
func (m *mounting) showMetrics(counts *metrics.Metrics, health func() error) (done func()) {
	if counts == nil {
		return func() {}
	}
	s, err := counts.Serve(m.metricsAddr.String(), health)
	if err != nil {
		m.warn(err.Error() + " (mounted without metrics)")
		return func() {}
	}
	m.fs.Logger.Info("metrics", "addr", s.Addr())
	return func() { s.Close() }
}
