package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/errand-fleet/errand/tasks"
)

func TestDesk(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m, task := NewDesk(r), tasks.Task{Source: "github", Class: tasks.Review}
	for _, receipt := range []tasks.Receipt{{New: true}, {}, {}, {Answered: true, New: true}} {
		m.Submitted(task, receipt)
	}
	expect(t, r, `
errand_tasks_submitted_total{class="review",result="answer",source="github"} 1
errand_tasks_submitted_total{class="review",result="known",source="github"} 2
errand_tasks_submitted_total{class="review",result="new",source="github"} 1`)
}
