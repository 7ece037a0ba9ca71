// Package metrics counts what a process of the fleet does, for Prometheus. docs/metrics.md lists the metrics and
// what to alert on.
//
// Labels are bounded: none holds an ID, a person, a thread or anything else that grows with use. Metrics are registered
// with a registry of the caller, so that several systems can run in one process. All methods may be called from any
// goroutine, and counting never waits.
package metrics

import (
	"cmp"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/worker"
	"github.com/errand-fleet/errand/tasks/worker/attempt"
)

// maxModels bounds the values of the label model: tasks may ask for any model.
const maxModels = 20

// metric describes a metric. Its labels are separated by blanks. It is a histogram if it has buckets.
type metric struct {
	name, help, labels string
	buckets            []float64
}

// meters are counters and histograms by name.
type meters struct {
	counters   map[string]*prometheus.CounterVec
	histograms map[string]*prometheus.HistogramVec
}

func newMeters(r prometheus.Registerer, list ...metric) meters {
	f, all := promauto.With(r), meters{map[string]*prometheus.CounterVec{}, map[string]*prometheus.HistogramVec{}}
	for _, m := range list {
		labels := strings.Fields(m.labels)
		// One without labels is reported from the beginning.
		if m.buckets != nil {
			all.histograms[m.name] = f.NewHistogramVec(prometheus.HistogramOpts{
				Name: m.name, Help: m.help, Buckets: m.buckets,
			}, labels)
			if len(labels) == 0 {
				all.histograms[m.name].WithLabelValues()
			}
			continue
		}
		all.counters[m.name] = f.NewCounterVec(prometheus.CounterOpts{Name: m.name, Help: m.help}, labels)
		if len(labels) == 0 {
			all.add(m.name, 0)
		}
	}
	return all
}

func (m meters) add(name string, n float64, labels ...string) {
	m.counters[name].WithLabelValues(labels...).Add(n)
}

func (m meters) observe(name string, v float64, labels ...string) {
	m.histograms[name].WithLabelValues(labels...).Observe(v)
}

// Tasks counts what a worker does with tasks.
type Tasks struct {
	meters
	repositories configured
	models       *firstSeen
}

var _ worker.Meter = (*Tasks)(nil)

// NewTasks registers the metrics of a worker. Costs of other repositories than the given ones are counted together.
func NewTasks(r prometheus.Registerer, repositories []string) *Tasks {
	m := &Tasks{repositories: repositories, models: newFirstSeen(maxModels), meters: newMeters(r, taskMetrics()...)}
	for _, class := range tasks.Classes { // so that the first one is an increase
		for _, why := range []attempt.Return{
			attempt.ReturnDrain, attempt.ReturnLost, attempt.ReturnWait, attempt.ReturnRetry, attempt.ReturnParked,
			attempt.ReturnError, attempt.ReturnCrash,
		} {
			m.add("errand_task_returns_total", 0, class, string(why))
		}
	}
	return m
}

func taskMetrics() []metric {
	return []metric{
		{
			name: "errand_task_wait_seconds", help: "Time from when a task was due until its first run.",
			labels: "class", buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600},
		},
		{
			name: "errand_run_duration_seconds", help: "Duration of runs.", labels: "class",
			buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200},
		},
		{
			name: "errand_run_memory_bytes", help: "Peak memory of all processes of a run.", labels: "class",
			buckets: prometheus.ExponentialBuckets(256<<20, 2, 8),
		},
		{
			name: "errand_run_disk_bytes", help: "What a run added to the disk, as last measured.", labels: "class",
			buckets: prometheus.ExponentialBuckets(64<<20, 4, 6),
		},
		{name: "errand_run_cpu_seconds_total", help: "Processor time of runs.", labels: "class"},
		{name: "errand_runs_total", help: "Runs by outcome.", labels: "source class outcome error"},
		{
			name: "errand_run_cost_usd_total", help: "Cost of runs in US dollars at list price.",
			labels: "source repository model",
		},
		{name: "errand_run_tokens_total", help: "Tokens used by runs.", labels: "kind model"},
		{name: "errand_model_calls_total", help: "Model calls of runs that use the gateway."},
		{name: "errand_model_errors_total", help: "Failed model calls by HTTP status.", labels: "status"},
		{name: "errand_run_kills_total", help: "CLI processes ended by a signal.", labels: "signal"},
		{
			name: "errand_run_swept_processes_total",
			help: "Processes that outlived the CLI of their run and were killed.",
		},
		{name: "errand_run_stuck_processes_total", help: "Processes of runs that could not be killed."},
		{
			name: "errand_egress_refused_total",
			help: "Connections and requests of runs to hosts that their egress list does not allow.",
		},
		{
			name: "errand_task_returns_total",
			help: "Claimed tasks that the worker returned without ending them, by reason.", labels: "class reason",
		},
		{
			name: "errand_task_endings_total", help: "Tasks whose final message is posted, by ending.",
			labels: "source class kind error",
		},
		{
			name: "errand_tasks_absorbed_total", help: "Tasks that ended with the run of another task.",
			labels: "source",
		},
		{
			name: "errand_outbox_lag_seconds", help: "Time from the end of a task until its final message was posted.",
			buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200},
		},
	}
}

// Began records how long a task waited.
func (m *Tasks) Began(t tasks.Task, waited time.Duration) {
	m.observe("errand_task_wait_seconds", waited.Seconds(), t.Class)
}

// Ran counts a run and its usage.
func (m *Tasks) Ran(t tasks.Task, r agent.Result) {
	model := m.models.label(r.Model)
	m.add("errand_runs_total", 1, t.Source, t.Class, string(r.Outcome), failure(r))
	m.observe("errand_run_duration_seconds", r.Duration.Seconds(), t.Class)
	m.observe("errand_run_memory_bytes", float64(r.Resources.Peak), t.Class)
	m.observe("errand_run_disk_bytes", float64(r.Resources.Disk), t.Class)
	m.add("errand_run_cpu_seconds_total", r.Resources.CPU.Seconds(), t.Class)
	m.add("errand_run_cost_usd_total", max(r.CostUSD, 0), t.Source, m.repositories.label(t.Repo), model)
	for kind, n := range map[string]int64{
		"input": r.Usage.Input, "output": r.Usage.Output, "cache_read": r.Usage.CacheRead,
		"cache_creation": r.Usage.CacheCreation,
	} {
		m.add("errand_run_tokens_total", float64(max(n, 0)), kind, model)
	}
	if r.Signal != "" {
		m.add("errand_run_kills_total", 1, r.Signal)
	}
	m.add("errand_run_swept_processes_total", float64(r.Resources.Swept))
	m.add("errand_run_stuck_processes_total", float64(r.Resources.Stuck))
	if r.Egress != nil {
		m.add("errand_egress_refused_total", float64(r.Egress.Refusals))
	}
	if r.API == nil {
		return
	}
	m.add("errand_model_calls_total", float64(r.API.Calls))
	for status, n := range r.API.Errors {
		m.add("errand_model_errors_total", float64(n), strconv.Itoa(status))
	}
}

// Returned counts a task that this worker did not end.
func (m *Tasks) Returned(class string, why attempt.Return) {
	m.add("errand_task_returns_total", 1, class, string(why))
}

// Ended counts an ending whose message is posted, and the tasks that ended with it.
func (m *Tasks) Ended(t tasks.Task, e tasks.Ending, lag time.Duration) {
	m.add("errand_task_endings_total", 1, t.Source, t.Class, string(e.Kind), failure(e.Result))
	m.add("errand_tasks_absorbed_total", float64(len(e.Covers)), t.Source)
	m.observe("errand_outbox_lag_seconds", max(lag, 0).Seconds())
}

// failure returns the class of a run's error, or "".
func failure(r agent.Result) string {
	if r.Error == nil {
		return ""
	}
	return string(r.Error.Class)
}

// Desk counts submitted tasks.
type Desk struct{ meters }

// NewDesk registers the metrics of a desk.
func NewDesk(r prometheus.Registerer) *Desk {
	return &Desk{newMeters(r, metric{
		name: "errand_tasks_submitted_total", help: "Submitted tasks: new ones, duplicates, and answers to questions.",
		labels: "source class result",
	})}
}

// Submitted counts a submitted task.
func (m *Desk) Submitted(t tasks.Task, r desk.Receipt) {
	result := "known"
	switch {
	case r.Answered:
		result = "answer"
	case r.New:
		result = "new"
	}
	m.add("errand_tasks_submitted_total", 1, t.Source, t.Class, result)
}

// NewRegistry returns a registry with the metrics of every process: its version, and those of the Go runtime and the
// operating system.
func NewRegistry(version string) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	promauto.With(r).NewGaugeVec(prometheus.GaugeOpts{
		Name: "errand_build_info", Help: "Always 1, with the version of errand.",
	}, []string{"version"}).WithLabelValues(version).Set(1)
	return r
}

// maxScrapes is how many scrapes are answered at once: they read from Redis.
const maxScrapes = 4

// Handler serves a registry. Metrics that cannot be read are left out.
func Handler(r *prometheus.Registry, log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
	})
}

// Values of labels without a name.
const (
	other = "other" // beyond the bound, or not configured
	none  = "none"
)

// firstSeen bounds the values of a label: the first ones are kept, and all others become "other".
type firstSeen struct {
	max int

	mu   sync.Mutex
	seen map[string]bool
}

func newFirstSeen(maximum int) *firstSeen { return &firstSeen{max: maximum, seen: map[string]bool{}} }

func (f *firstSeen) label(name string) string {
	name = cmp.Or(name, none)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.seen[name] {
		if len(f.seen) >= f.max {
			return other
		}
		f.seen[name] = true
	}
	return name
}

// configured bounds the values of a label to configured ones. Like GitHub it ignores case.
type configured []string

func (c configured) label(name string) string {
	if name == "" {
		return none
	}
	for _, n := range c {
		if strings.EqualFold(n, name) {
			return n
		}
	}
	return other
}
