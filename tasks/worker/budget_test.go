package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/redisclock"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/rights"
)

// budgeted is a fleet whose runs cost $0.45 each, on one day.
func budgeted(t *testing.T, b rights.Budgets) *fleet {
	t.Helper()
	url, _ := redisclock.AtMidday(t)
	f := newFleetOn(t, url)
	f.policy.Budgets = b
	f.desk = desk.New(f.store, f.queue, f.policy, nil)
	f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) { return costing(0.45), nil }
	return f
}

// interrupted is an agent that is stopped when it has spent that much.
func interrupted(started chan<- string, usd float64) func(context.Context,
	agent.Spec, agent.Host) (agent.Result, error) {
	until := untilStopped(started)
	return func(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error) {
		r, err := until(ctx, s, h)
		r.CostUSD = usd
		return r, err
	}
}

func costing(usd float64) agent.Result {
	r := answer("done")
	r.CostUSD = usd
	return r
}

func TestBudgetWarnsAndRefuses(t *testing.T) {
	t.Parallel()
	f := budgeted(t, rights.Budgets{User: 1, Contact: "#platform"})
	var ids []string
	for range 4 {
		ids = append(ids, f.submit(f.task("a", "x")))
	}
	f.worker()
	for i, want := range []string{"$0.45", "$0.45 · your budget for today: $0.90 of $1.00", "$0.45"} {
		if e := f.ending(ids[i]); e.Kind != tasks.Answered || !strings.HasSuffix(e.Footer(), " · "+want) {
			t.Errorf("run %d: %s, %s", i+1, e.Kind, e.Footer())
		}
	}
	const sentence = "Your budget for today is used up: $1.35 of $1.00. #platform can raise it; a new day begins at midnight UTC."
	if e := f.ending(ids[3]); e.Kind != tasks.Refused || e.Sentence() != sentence ||
		e.Option != "budget user:fake/somebody $1.00" {
		t.Errorf("ending = %+v", e)
	}
	runs := f.agent.specs()
	if len(runs) != 3 || runs[0].MaxUSD != 1 || runs[1].MaxUSD != 0.55 || runs[2].MaxUSD != 0.1 {
		t.Errorf("%d runs: %+v", len(runs), runs)
	}

	_, err := f.desk.Submit(t.Context(), f.task("b", "x"))
	if input, ok := errors.AsType[*tasks.InputError](err); !ok || input.Sentence != sentence {
		t.Errorf("submit = %v", err)
	}
	program := f.task("b", "x")
	program.Unattended = true
	if e := f.ending(f.submit(program)); e.Kind != tasks.Refused || e.Sentence() != sentence {
		t.Errorf("ending of what nobody asked for = %+v", e)
	}
	again := f.task("a", "x")
	again.ID = ids[0] // an accepted task is not refused when its event is delivered again
	if r, err := f.desk.Submit(t.Context(), again); err != nil || r.New {
		t.Errorf("submit again = %+v, %v", r, err)
	}
	other := f.task("b", "x")
	other.Actor = "another"
	if e := f.ending(f.submit(other)); e.Kind != tasks.Answered {
		t.Errorf("another's ending = %+v", e)
	}
}

// A task that does not fit beside the reservations of others waits, and starts when they free enough.
func TestReservedBudgetIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := budgeted(t, rights.Budgets{Day: 1.5})
	started, finish := make(chan string, 2), make(chan struct{})
	f.agent.do = func(ctx context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		started <- s.ID
		select {
		case <-finish:
		case <-ctx.Done(): // the test has failed
		}
		return costing(0.25), nil
	}
	f.worker(func(c *Config) { c.Timing.Budget = 50 * time.Millisecond })
	first := f.submit(f.task("a", "x"))
	f.next(started)
	second := f.submit(f.task("b", "x"))
	f.waits(second)
	if s, err := f.desk.Status(t.Context(), second); err != nil || s.Attempt != 0 ||
		s.State != "waiting" && s.State != "running" {
		t.Errorf("status = %+v, %v", s, err)
	}
	if told := <-f.source.waited; told != second+" Waiting: the day's budget is reserved by other runs" { // no amount: the answer may be public
		t.Errorf("shown: %s", told)
	}
	close(finish)
	f.ending(first)
	f.ending(second)
	f.stopAll()
	if n := len(f.source.waited); n != 0 {
		t.Errorf("posted %d more times", n)
	}
	if runs := f.agent.specs(); f.agent.peak != 1 || len(runs) != 2 || runs[1].MaxUSD != 1.25 {
		t.Errorf("%d at once: %+v", f.agent.peak, runs)
	}
}

// The cost of an interrupted run counts for the task's own maximum, in its ending, and in the budgets.
func TestInterruptedRunsAreSettled(t *testing.T) {
	t.Parallel()
	f := budgeted(t, rights.Budgets{Task: 1})
	started := make(chan string, 1)
	f.agent.do = interrupted(started, 0.3)
	task := f.task("a", "x")
	task.Options.MaxUSD = 20
	stop := f.worker()
	f.submit(task)
	f.next(started)
	stop()
	f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) { return costing(0.4), nil }
	stop = f.worker()
	if e := f.ending(task.ID); e.Bill.Earlier != 0.3 || !strings.Contains(e.Footer(), "$0.70") {
		t.Errorf("ending = %+v, %s", e, e.Footer())
	}
	if runs := f.agent.specs(); runs[0].MaxUSD != 1 || runs[1].MaxUSD != 0.7 {
		t.Errorf("runs: %+v", runs)
	}
	if rec, err := f.store.Get(t.Context(), task.ID); err != nil || rec.Cost != 0.7 {
		t.Errorf("cost $%.2f, %v", rec.Cost, err)
	}

	stop()
	f.agent.do = interrupted(started, 1.1)
	stop = f.worker()
	spent := f.submit(f.task("b", "x"))
	f.next(started)
	stop()
	f.worker()
	if e := f.ending(spent); e.Kind != tasks.Failed || e.Result.Error == nil ||
		e.Result.Error.Class != agent.ClassBudget ||
		!strings.Contains(e.Reason, "its budget of $1.00 for this task") {
		t.Errorf("ending = %+v", e)
	}
}

// A run that has used up its budget says which one it was, and who can raise it.
func TestExhaustedBudgetIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		budgets rights.Budgets
		asked   float64
		want    string
	}{
		"its own": {
			rights.Budgets{Task: 5},
			2, "The agent used up its budget of $2.00 for this task. Ask again with a larger budget, up to $5.00.",
		},
		"the fleet's": {
			rights.Budgets{Task: 5, Contact: "Ann"},
			0, "The agent used up its budget of $5.00 for this task. Ann can raise it.",
		},
		"no other": {
			rights.Budgets{}, 2, "The agent used up its budget of $2.00 for this task. Ask again with a larger budget.",
		},
		"the day's": {
			rights.Budgets{Task: 5, Day: 3},
			0, "The agent used up the $3.00 that a budget for today had left. " +
				"An operator can raise it; a new day begins at midnight UTC.",
		},
		"none": {rights.Budgets{}, 0, "The agent used up its budget for this task."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := budgeted(t, c.budgets)
			f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
				r := costing(1)
				r.Outcome, r.Error = agent.Failed, agent.NewError(agent.ClassBudget, "x")
				return r, nil
			}
			f.worker()
			task := f.task("a", "x")
			task.Options.MaxUSD = c.asked
			if e := f.ending(f.submit(task)); e.Reason != c.want {
				t.Errorf("%q, want %q", e.Reason, c.want)
			}
		})
	}
}

// However a run ends, its cost is settled and its reservation released. A task that runs twice because it stalled costs
// both runs.
func TestEveryOutcomeIsSettled(t *testing.T) {
	t.Parallel()
	f := budgeted(t, rights.Budgets{Day: 100})
	f.worker()
	for _, o := range []agent.Outcome{agent.Done, agent.Failed, agent.Limit, agent.Stalled} {
		f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
			r := costing(0.5)
			if r.Outcome = o; o == agent.Failed {
				r.Error = agent.NewError(agent.ClassBudget, "x")
			}
			return r, nil
		}
		id := f.submit(f.task(string(o), "x"))
		f.ending(id)
		if rec, err := f.store.Get(t.Context(), id); err != nil || rec.Cost != 0.5*float64(rec.Attempt) ||
			o == agent.Stalled && rec.Attempt != 2 {
			t.Errorf("%s: cost $%.2f of %d runs, %v", o, rec.Cost, rec.Attempt, err)
		}
	}
	keys, err := f.rdb.Keys(t.Context(), "errand:spend:*:fleet").Result()
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	if all, err := f.rdb.HGetAll(t.Context(), keys[0]).Result(); err != nil || len(all) != 1 ||
		all["spent"] != "2500000" {
		t.Errorf("%v, %v", all, err)
	}
}

// A retry spends what the task's maximum has left, and its cost is added to that of the runs before. A task that has
// nothing left is not retried.
func TestRetriesAreOnTheBill(t *testing.T) {
	t.Parallel()
	f := budgeted(t, rights.Budgets{Task: 1})
	f.worker()
	id := f.submit(f.task("a", "x"))
	f.ending(id)
	retry := func() error {
		f.source.mu.Lock()
		delete(f.source.closed, id)
		f.source.mu.Unlock()
		_, err := f.desk.Retry(t.Context(), id)
		return err
	}
	for _, want := range []string{"$0.90", "$1.35"} {
		if err := retry(); err != nil {
			t.Fatal(err)
		}
		if e := f.ending(id); !strings.Contains(e.Footer(), want) {
			t.Errorf("ending = %+v, %s, want %s", e, e.Footer(), want)
		}
	}
	if runs := f.agent.specs(); len(runs) != 3 || runs[0].MaxUSD != 1 || runs[1].MaxUSD != 0.55 {
		t.Errorf("runs: %+v", runs)
	}
	err := retry()
	if input, ok := errors.AsType[*tasks.InputError](err); !ok ||
		!strings.Contains(input.Sentence, "its budget of $1.00 for this task") {
		t.Errorf("retry without money: %v", err)
	}
	st := f.status(id)
	day := 24 * time.Hour
	costs, err := f.desk.Costs(t.Context(), desk.CostQuery{First: st.Created.Add(-day), Last: st.Ended.Add(day)})
	if err != nil || st.Spent() != 1.35 || costs.Total.USD != st.Spent() || costs.Total.Runs != 3 {
		t.Errorf("the task has cost %v, the costs are %+v, %v", st.Spent(), costs.Total, err)
	}
}

// A run that the task's own maximum ended leaves nothing for a retry, even if it cost a little less. One that a budget
// of the day ended is retried on another day.
func TestRetryAfterTheMaximum(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		budgets rights.Budgets
		may     bool
	}{
		"its own":   {rights.Budgets{Task: 1}, false},
		"the day's": {rights.Budgets{Task: 5, Day: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := budgeted(t, c.budgets)
			f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
				r := costing(0.97)
				r.Outcome, r.Error = agent.Failed, agent.NewError(agent.ClassBudget, "x")
				return r, nil
			}
			f.worker()
			id := f.submit(f.task("a", "x"))
			f.ending(id)
			if info, err := f.asynq.GetTaskInfo(tasks.Interactive, id); err != nil ||
				string(info.Result) != "failed (budget)" {
				t.Errorf("asynq's result: %+v, %v", info, err)
			}
			if _, err := f.desk.Retry(t.Context(), id); (err == nil) != c.may {
				t.Error(err)
			}
		})
	}
}
