package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/errand-fleet/errand/tasks"
)

// Desk counts what is submitted.
type Desk struct{ submitted *prometheus.CounterVec }

var _ tasks.DeskMeter = (*Desk)(nil)

// NewDesk registers what is counted.
func NewDesk(r prometheus.Registerer) *Desk {
	return &Desk{promauto.With(r).NewCounterVec(prometheus.CounterOpts{
		Name: "errand_tasks_submitted_total", Help: "Tasks that were submitted: new, known already, or the answer to a question.",
	}, []string{"source", "class", "result"})}
}

// Submitted counts a task that the desk has taken.
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
