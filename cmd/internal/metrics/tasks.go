// Package metrics counts what a process of the fleet does, for Prometheus. docs/operations.md lists the metrics and
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
	"github.com/errand-fleet/errand/tasks/worker"
)

// maxModels bounds the values of the label model: tasks may ask for any model.
const maxModels = 20

// Tasks counts what a worker does with tasks.
type Tasks struct {
	repositories configured
	models       *firstSeen

	wait     *prometheus.HistogramVec
	duration *prometheus.HistogramVec
	runs     *prometheus.CounterVec
	cost     *prometheus.CounterVec
	tokens   *prometheus.CounterVec
	calls    prometheus.Counter
	refused  *prometheus.CounterVec
	signals  *prometheus.CounterVec
	swept    prometheus.Counter
	stuck    prometheus.Counter
	returns  *prometheus.CounterVec
	endings  *prometheus.CounterVec
	absorbed *prometheus.CounterVec
	lag      prometheus.Histogram
}

var _ worker.Meter = (*Tasks)(nil)

// NewTasks registers the metrics of a worker. Costs of other repositories than the given ones are counted together.
func NewTasks(r prometheus.Registerer, repositories []string) *Tasks {
	f := promauto.With(r)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Tasks{
		repositories: repositories, models: newFirstSeen(maxModels),
		wait: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "errand_task_wait_seconds", Help: "Time from when a task was due until its first run.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600},
		}, []string{"class"}),
		duration: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "errand_run_duration_seconds", Help: "Duration of runs.",
			Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200},
		}, []string{"class"}),
		runs: counter("errand_runs_total", "Runs by outcome.", "source", "class", "outcome", "error"),
		cost: counter("errand_run_cost_usd_total", "Cost of runs in US dollars at list price.", "source", "repository", "model"),

		tokens:  counter("errand_run_tokens_total", "Tokens used by runs.", "kind", "model"),
		calls:   f.NewCounter(prometheus.CounterOpts{Name: "errand_model_calls_total", Help: "Model calls of runs that use the gateway."}),
		refused: counter("errand_model_errors_total", "Failed model calls by HTTP status.", "status"),
		signals: counter("errand_run_kills_total", "CLI processes ended by a signal.", "signal"),
		swept: f.NewCounter(prometheus.CounterOpts{
			Name: "errand_run_swept_processes_total", Help: "Processes that outlived the CLI of their run and were killed.",
		}),
		stuck: f.NewCounter(prometheus.CounterOpts{
			Name: "errand_run_stuck_processes_total", Help: "Processes of runs that could not be killed.",
		}),
		returns:  counter("errand_task_returns_total", "Claimed tasks that the worker returned without ending them, by reason.", "class", "reason"),
		endings:  counter("errand_task_endings_total", "Tasks whose final message is posted, by ending.", "source", "class", "kind", "error"),
		absorbed: counter("errand_tasks_absorbed_total", "Tasks that ended with the run of another task.", "source"),
		lag: f.NewHistogram(prometheus.HistogramOpts{
			Name: "errand_outbox_lag_seconds", Help: "Time from the end of a task until its final message was posted.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200},
		}),
	}
	for _, class := range tasks.Classes { // so that the first one is an increase
		for _, why := range []worker.Return{
			worker.ReturnDrain, worker.ReturnLost, worker.ReturnWait, worker.ReturnRetry, worker.ReturnParked, worker.ReturnError, worker.ReturnCrash,
		} {
			m.returns.WithLabelValues(class, string(why))
		}
	}
	return m
}

// Began records how long a task waited.
func (m *Tasks) Began(t tasks.Task, waited time.Duration) {
	m.wait.WithLabelValues(t.Class).Observe(waited.Seconds())
}

// Ran counts a run and its usage.
func (m *Tasks) Ran(t tasks.Task, r agent.Result) {
	model := m.models.label(r.Model)
	m.runs.WithLabelValues(t.Source, t.Class, string(r.Outcome), failure(r)).Inc()
	m.duration.WithLabelValues(t.Class).Observe(r.Duration.Seconds())
	m.cost.WithLabelValues(t.Source, m.repositories.label(t.Repo), model).Add(max(r.CostUSD, 0))
	for kind, n := range map[string]int64{
		"input": r.Usage.Input, "output": r.Usage.Output, "cache_read": r.Usage.CacheRead, "cache_creation": r.Usage.CacheCreation,
	} {
		m.tokens.WithLabelValues(kind, model).Add(float64(max(n, 0)))
	}
	if r.Signal != "" {
		m.signals.WithLabelValues(r.Signal).Inc()
	}
	m.swept.Add(float64(r.Resources.Swept))
	m.stuck.Add(float64(r.Resources.Stuck))
	if r.API == nil {
		return
	}
	m.calls.Add(float64(r.API.Calls))
	for status, n := range r.API.Errors {
		m.refused.WithLabelValues(strconv.Itoa(status)).Add(float64(n))
	}
}

// Returned counts a task that this worker did not end.
func (m *Tasks) Returned(class string, why worker.Return) {
	m.returns.WithLabelValues(class, string(why)).Inc()
}

// Ended counts an ending whose message is posted, and the tasks that ended with it.
func (m *Tasks) Ended(t tasks.Task, e tasks.Ending, lag time.Duration) {
	m.endings.WithLabelValues(t.Source, t.Class, string(e.Kind), failure(e.Result)).Inc()
	m.absorbed.WithLabelValues(t.Source).Add(float64(len(e.Covers)))
	m.lag.Observe(max(lag, 0).Seconds())
}

// failure returns the class of a run's error, or "".
func failure(r agent.Result) string {
	if r.Error == nil {
		return ""
	}
	return string(r.Error.Class)
}

// Desk counts submitted tasks.
type Desk struct{ submitted *prometheus.CounterVec }

var _ tasks.DeskMeter = (*Desk)(nil)

// NewDesk registers the metrics of a desk.
func NewDesk(r prometheus.Registerer) *Desk {
	return &Desk{promauto.With(r).NewCounterVec(prometheus.CounterOpts{
		Name: "errand_tasks_submitted_total", Help: "Submitted tasks: new ones, duplicates, and answers to questions.",
	}, []string{"source", "class", "result"})}
}

// Submitted counts a submitted task.
func (m *Desk) Submitted(t tasks.Task, r tasks.Receipt) {
	result := "known"
	switch {
	case r.Answered:
		result = "answer"
	case r.New:
		result = "new"
	}
	m.submitted.WithLabelValues(t.Source, t.Class, result).Inc()
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
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: maxScrapes,
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
