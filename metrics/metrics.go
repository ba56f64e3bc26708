// Package metrics counts what a mount does, and shows it to Prometheus. It is told of what happens
// (fs.Observer) and looks at nothing itself.
package metrics

import (
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"weightfs/format"
)

// Metrics are the counts of one server. It observes a mount (fs.Observer), and its methods may be
// called by many readers at once.
type Metrics struct {
	registry *prometheus.Registry
	loads    *prometheus.CounterVec
	latency  prometheus.Histogram
	bytes    prometheus.Counter
	errors   *prometheus.CounterVec
	open     prometheus.Gauge
	models   prometheus.Gauge
	parse    prometheus.Histogram
	index    *prometheus.CounterVec
}

// New makes the metrics of a program of that version.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		loads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weightfs_tensor_loads_total", Help: "Opens of a tensor's file, by the container's format and the view."}, []string{"format", "view"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "weightfs_load_latency_seconds", Help: "Time of a READ request, until the kernel has the bytes.",
			Buckets: prometheus.ExponentialBuckets(4e-6, 2, 20)}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weightfs_served_bytes_total", Help: "Bytes that READ requests were answered with; what the kernel has cached is not asked for again."}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weightfs_errors_total", Help: "Requests that failed, by operation and errno."}, []string{"op", "errno"}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weightfs_open_files", Help: "Files of the mount that are open."}),
		models: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weightfs_checkpoints", Help: "Checkpoints that are open."}),
		parse: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "weightfs_checkpoint_open_seconds", Help: "Time to open a checkpoint: recognise, parse, make the tree.",
			Buckets: prometheus.ExponentialBuckets(1e-3, 4, 9)}),
		index: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weightfs_index_lookups_total", Help: "Checkpoints opened, by whether the persisted index was of use."}, []string{"result"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weightfs_build_info", Help: "1, with the version as a label.", ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	m.start()
	m.registry.MustRegister(m.loads, m.latency, m.bytes, m.errors, m.open, m.models, m.parse, m.index, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// start shows what is expected to happen as zero: a rate misses the increment that a series begins with.
func (m *Metrics) start() {
	for _, result := range []string{hit, miss} {
		m.index.WithLabelValues(result)
	}
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ESTALE} {
		m.errors.WithLabelValues("open", errnoName(errno))
		m.errors.WithLabelValues("read", errnoName(errno))
	}
}

const (
	hit  = "hit"
	miss = "miss"
)

// CheckpointOpened counts a checkpoint that was opened.
func (m *Metrics) CheckpointOpened(c *format.Checkpoint) {
	m.models.Inc()
	m.parse.Observe(c.Took.Seconds())
	if c.FromIndex {
		m.index.WithLabelValues(hit).Inc()
	} else {
		m.index.WithLabelValues(miss).Inc()
	}
}

// Opened counts an open(2).
func (m *Metrics) Opened(f format.File, errno syscall.Errno) {
	if errno != 0 {
		m.failed("open", errno)
		return
	}
	m.open.Inc()
	if t, ok := f.(format.TensorFile); ok {
		m.loads.WithLabelValues(t.ShardFormat(), t.View()).Inc()
	}
}

// Closed counts the last close of a file that was opened.
func (m *Metrics) Closed(format.File) { m.open.Dec() }

// Read counts a READ request.
func (m *Metrics) Read(_ format.File, n int, took time.Duration, errno syscall.Errno) {
	if errno != 0 {
		m.failed("read", errno)
		return
	}
	m.bytes.Add(float64(n))
	m.latency.Observe(took.Seconds())
}

func (m *Metrics) failed(op string, errno syscall.Errno) {
	m.errors.WithLabelValues(op, errnoName(errno)).Inc()
}
