package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// models is how many names of models are told apart: tasks may ask for any.
const models = 20

// Tasks counts what a worker does with tasks.
type Tasks struct {
	repositories known
	models       *few

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

var _ tasks.Meter = (*Tasks)(nil)

// NewTasks registers what is counted. Costs are told apart by those repositories; all others are one.
func NewTasks(r prometheus.Registerer, repositories []string) *Tasks {
	f := promauto.With(r)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Tasks{
		repositories: repositories, models: newFew(models),
		wait: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "errand_task_wait_seconds", Help: "From when a task was due until a worker took it for its first run.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600},
		}, []string{"class"}),
		duration: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "errand_run_duration_seconds", Help: "How long runs of the agent took.",
			Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200},
		}, []string{"class"}),
		runs: counter("errand_runs_total", "Runs of the agent, by how they ended.", "source", "class", "outcome", "error"),
		cost: counter("errand_run_cost_usd_total", "What runs cost in US dollars at list price.", "source", "repository", "model"),

		tokens:  counter("errand_run_tokens_total", "Tokens that runs used.", "kind", "model"),
		calls:   f.NewCounter(prometheus.CounterOpts{Name: "errand_model_calls_total", Help: "Calls of the model, by runs that go through the gateway."}),
		refused: counter("errand_model_errors_total", "Calls of the model that failed.", "status"),
		signals: counter("errand_run_kills_total", "CLIs that a signal ended.", "signal"),
		swept: f.NewCounter(prometheus.CounterOpts{
			Name: "errand_run_swept_processes_total", Help: "Processes that had outlived their run's CLI and were killed.",
		}),
		stuck: f.NewCounter(prometheus.CounterOpts{
			Name: "errand_run_stuck_processes_total", Help: "Processes of runs that could not be killed.",
		}),
		returns:  counter("errand_task_returns_total", "Claimed tasks that the worker did not end, by why.", "class", "reason"),
		endings:  counter("errand_task_endings_total", "Tasks whose final message is out, by how they ended.", "source", "class", "kind", "error"),
		absorbed: counter("errand_tasks_absorbed_total", "Tasks that ended with the run of another.", "source"),
		lag: f.NewHistogram(prometheus.HistogramOpts{
			Name: "errand_outbox_lag_seconds", Help: "From a task's ending until its final message was out.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200},
		}),
	}
	for _, class := range tasks.Classes { // so that the first one counts as a rise
		for _, why := range []tasks.Return{
			tasks.ReturnDrain, tasks.ReturnLost, tasks.ReturnWait, tasks.ReturnRetry, tasks.ReturnParked, tasks.ReturnError, tasks.ReturnCrash,
		} {
			m.returns.WithLabelValues(class, string(why))
		}
	}
	return m
}

// Began counts the wait of a task that starts.
func (m *Tasks) Began(t tasks.Task, waited time.Duration) {
	m.wait.WithLabelValues(t.Class).Observe(waited.Seconds())
}

// Ran counts a run and what it used.
func (m *Tasks) Ran(t tasks.Task, r agent.Result) {
	model := m.models.of(r.Model)
	m.runs.WithLabelValues(t.Source, t.Class, string(r.Outcome), failure(r)).Inc()
	m.duration.WithLabelValues(t.Class).Observe(r.Duration.Seconds())
	m.cost.WithLabelValues(t.Source, m.repositories.of(t.Repo), model).Add(max(r.CostUSD, 0))
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
func (m *Tasks) Returned(class string, why tasks.Return) {
	m.returns.WithLabelValues(class, string(why)).Inc()
}

// Ended counts an ending whose message is out, and the tasks that ended with it.
func (m *Tasks) Ended(t tasks.Task, e tasks.Ending, lag time.Duration) {
	m.endings.WithLabelValues(t.Source, t.Class, string(e.Kind), failure(e.Result)).Inc()
	m.absorbed.WithLabelValues(t.Source).Add(float64(len(e.Covers)))
	m.lag.Observe(max(lag, 0).Seconds())
}

// failure is the class of a run's error, empty when it had none.
func failure(r agent.Result) string {
	if r.Error == nil {
		return ""
	}
	return string(r.Error.Class)
}
