package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/worker/attempt"
)

// The usage of a run is counted under labels with a bounded number of values.
func TestTasks(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := NewTasks(r, []string{"acme/api"})
	task := func(repo string) tasks.Task {
		return tasks.Task{ID: "1-x", Source: "slack", Class: tasks.Interactive, Repo: repo, Actor: "ann"}
	}
	m.Ran(task("Acme/API"), agent.Result{
		Outcome: agent.Done, CostUSD: .5, Model: "opus", Usage: agent.Usage{Input: 10, CacheRead: 7},
	})
	m.Ran(task("acme/secret"), agent.Result{
		Outcome: agent.Stalled, CostUSD: .25, Model: "opus", Signal: "SIGKILL", Usage: agent.Usage{Input: 5},
	})
	m.Ran(task(""), agent.Result{
		Outcome: agent.Failed, Error: agent.NewError(agent.ClassAuth, "no"),
		API: &agent.API{Calls: 3, Errors: map[int]int{401: 3}},
	})
	m.Returned(tasks.Interactive, attempt.ReturnRetry)
	m.Ended(task(""), tasks.Ending{Kind: tasks.Answered, Covers: []string{"a", "b"}}, 2*time.Second)
	m.Ended(task(""), tasks.Ending{
		Kind: tasks.Failed, Result: agent.Result{Error: agent.NewError(agent.ClassAuth, "no")},
	}, -time.Second)
	expect(t, r, `
errand_model_calls_total 3
errand_model_errors_total{status="401"} 3
errand_outbox_lag_seconds_count 2
errand_outbox_lag_seconds_sum 2
errand_run_cost_usd_total{model="none",repository="none",source="slack"} 0
errand_run_cost_usd_total{model="opus",repository="acme/api",source="slack"} 0.5
errand_run_cost_usd_total{model="opus",repository="other",source="slack"} 0.25
errand_run_kills_total{signal="SIGKILL"} 1
errand_run_tokens_total{kind="cache_read",model="opus"} 7
errand_run_tokens_total{kind="input",model="opus"} 15
errand_runs_total{class="interactive",error="",outcome="done",source="slack"} 1
errand_runs_total{class="interactive",error="",outcome="stalled",source="slack"} 1
errand_runs_total{class="interactive",error="auth",outcome="failed",source="slack"} 1
errand_task_endings_total{class="interactive",error="",kind="answered",source="slack"} 1
errand_task_endings_total{class="interactive",error="auth",kind="failed",source="slack"} 1
errand_task_returns_total{class="interactive",reason="claim_lost"} 0
errand_task_returns_total{class="interactive",reason="retry"} 1
errand_tasks_absorbed_total{source="slack"} 2`)
}

func TestFewModels(t *testing.T) {
	t.Parallel()
	f := newFirstSeen(2)
	for _, c := range [][2]string{{"a", "a"}, {"b", "b"}, {"c", other}, {"a", "a"}, {"", other}} {
		if got := f.label(c[0]); got != c[1] {
			t.Errorf("%q is %q, want %q", c[0], got, c[1])
		}
	}
}

func TestDesk(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m, task := NewDesk(r), tasks.Task{Source: "github", Class: tasks.Review}
	for _, receipt := range []desk.Receipt{{New: true}, {}, {}, {Answered: true, New: true}} {
		m.Submitted(task, receipt)
	}
	expect(t, r, `
errand_tasks_submitted_total{class="review",result="answer",source="github"} 1
errand_tasks_submitted_total{class="review",result="known",source="github"} 2
errand_tasks_submitted_total{class="review",result="new",source="github"} 1`)
}
