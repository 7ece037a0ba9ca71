package worker

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// pricey is a fleet whose tasks cost the amount in costs, and whose people are asked above $1.50.
func pricey(t *testing.T, costs chan float64) (*fleet, *talkingSource) {
	t.Helper()
	f, s := talking(t, nil)
	f.policy.Budgets.AskAbove = 1.5
	f.agent.do = func(_ context.Context, _ agent.Spec, h agent.Host) (agent.Result, error) {
		h.Event(agent.Event{Kind: agent.Text, Text: "at work", Time: time.Now()})
		return costing(<-costs), nil
	}
	return f, s
}

// known runs three tasks, which people are not asked about because nothing is known of what such tasks cost.
func (f *fleet) known(costs chan float64) {
	f.Helper()
	for _, usd := range []float64{6, 1, 2} {
		costs <- usd
		f.ending(f.submit(f.task("known", "x")))
	}
}

// What a task is likely to cost is said before its run, and above a limit people are asked first. The run begins if
// they agree, also on another worker than the one that asked.
func TestEstimateIsShownAndAsked(t *testing.T) {
	t.Parallel()
	costs := make(chan float64, 1)
	f, s := pricey(t, costs)
	stop := f.talker(s)
	f.known(costs)
	id := f.submit(f.task("a", "x"))
	q := <-s.asked
	if q.Text != "This is likely to cost about $2.00, from 3 tasks like it. Shall I start?" || !q.Start {
		t.Errorf("asked %+v", q)
	}
	if n := len(f.agent.specs()); n != 3 {
		t.Errorf("%d runs before an answer", n)
	}
	stop()
	if err := tasks.RememberCost(t.Context(), f.store, f.task("a", "x"), 0, 9); err != nil { // $4.00 from now on
		t.Fatal(err)
	}
	if _, err := f.desk.Answer(t.Context(), id, "", "ann", "yes"); err != nil {
		t.Fatal(err)
	}
	f.talker(s)
	costs <- 3
	if e := f.ending(id); e.Kind != tasks.Answered {
		t.Errorf("ending %+v", e)
	}
	told := ""
	for l, err := range f.desk.Follow(t.Context(), id, "") {
		if err != nil {
			t.Fatal(err)
		}
		told += l.Event.Text + "\n"
	}
	if !strings.Contains(told, "Likely to cost about $4.00, from 4 tasks like it\nat work\n") || len(s.asked) > 0 {
		t.Errorf("events:\n%s", told)
	}
	cheap := f.task("b", "x")
	cheap.Options.MaxUSD = 1
	costs <- 1
	if e := f.ending(f.submit(cheap)); e.Kind != tasks.Answered || len(s.asked) > 0 {
		t.Errorf("with a lower maximum: %+v", e)
	}
}

// What is left of a budget does not lower the estimate, and a task that waits for consent reserves nothing of it.
func TestQuestionReservesNoBudget(t *testing.T) {
	t.Parallel()
	costs := make(chan float64, 1)
	f, s := pricey(t, costs)
	f.policy.Budgets.Day = 10
	f.talker(s)
	f.known(costs) // $9
	id := f.submit(f.task("a", "x"))
	if q := <-s.asked; !strings.Contains(q.Text, "about $2.00") {
		t.Errorf("asked %+v", q)
	}
	cheap := f.task("b", "x")
	cheap.Options.MaxUSD = 1 // all that is left
	costs <- 0.25
	if e := f.ending(f.submit(cheap)); e.Kind != tasks.Answered {
		t.Errorf("beside the question: %+v", e)
	}
	if _, err := f.desk.Answer(t.Context(), id, "", "ann", "yes"); err != nil {
		t.Fatal(err)
	}
	costs <- 0.5
	if e := f.ending(id); e.Kind != tasks.Answered {
		t.Errorf("ending %+v", e)
	}
	if specs := f.agent.specs(); len(specs) != 5 || specs[4].MaxUSD != 0.75 {
		t.Errorf("runs %+v", specs)
	}
}

// A task that may start, and that waits for a budget then, shows the answer to people once more and not at each
// attempt.
func TestConsentIsShownOnce(t *testing.T) {
	t.Parallel()
	costs := make(chan float64, 1)
	f, s := pricey(t, costs)
	s.settled = make(chan tasks.Answer, 100)
	f.policy.Budgets.Day = 10
	f.talker(s, func(c *Config) { c.Timing.Budget = 20 * time.Millisecond })
	f.known(costs) // $9
	all := f.task("b", "x")
	all.Options.MaxUSD = 1 // all that is left
	first := f.submit(all)
	id := f.submit(f.task("a", "x"))
	<-s.asked
	if _, err := f.desk.Answer(t.Context(), id, "", "ann", "yes"); err != nil {
		t.Fatal(err)
	}
	seen := map[time.Time]bool{}
	await.Until(t, "it waits five times for the budget", func() bool {
		if s := f.status(id); s.Why == whyReserved {
			seen[s.At] = true
		}
		return len(seen) >= 5
	})
	costs <- 0.25
	costs <- 0.5
	f.ending(first)
	f.ending(id)
	if n := len(s.settled); n > 2 {
		t.Errorf("the answer was shown %d times", n)
	}
}

// A worker that dies while people are asked is no crash of the task. One that dies after their consent is.
func TestCrashWhileAsked(t *testing.T) {
	t.Parallel()
	for name, crashes := range map[string]int{"asked": 0, "started": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			costs := make(chan float64, 1)
			f, s := pricey(t, costs)
			f.talker(s, dying)
			f.known(costs)
			id := f.submit(f.task("a", "x"))
			<-s.asked
			if crashes > 0 {
				if _, err := f.desk.Answer(t.Context(), id, "", "ann", "yes"); err != nil {
					t.Fatal(err)
				}
				await.Until(t, "it runs", func() bool { return len(f.agent.specs()) != 3 })
			}
			(&remote{fleet: f}).crash(id)
			if rec, err := f.store.Get(t.Context(), id); err != nil || rec.Crashes != crashes {
				t.Errorf("%d crashes, %v", rec.Crashes, err)
			}
			costs <- 1
		})
	}
}

// Without consent nothing runs.
func TestExpensiveTaskDoesNotStart(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"2":          "ann decided not to start this, which is likely to cost about $2.00, from 3 tasks like it.",
		"what is it": "ann decided not to start this, which is likely to cost about $2.00, from 3 tasks like it.",
		"":           "This was not started: it is likely to cost about $2.00, from 3 tasks like it, and no one said in time that it should start.",
	} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			costs := make(chan float64, 1)
			f, s := pricey(t, costs)
			f.talker(s, func(c *Config) {
				if answer == "" {
					c.Timing.Answer = time.Millisecond
				}
			})
			f.known(costs)
			id := f.submit(f.task("a", "x"))
			<-s.asked
			if answer != "" {
				if _, err := f.desk.Answer(t.Context(), id, "", "ann", answer); err != nil {
					t.Fatal(err)
				}
			}
			if e := f.ending(id); e.Kind != tasks.Refused || e.Reason != want || len(f.agent.specs()) != 3 {
				t.Errorf("%d runs, ending %+v", len(f.agent.specs()), e)
			}
		})
	}
}

// People are not asked about a task that its source refuses, such as that of a stranger on GitHub, or whose budget is
// used up. What the source says after the answer counts as well.
func TestRefusedTaskIsNotAskedAbout(t *testing.T) {
	t.Parallel()
	costs := make(chan float64, 1)
	f, s := pricey(t, costs)
	f.policy.Budgets.Day = 10
	stop := f.talker(s)
	f.known(costs) // $9
	refusal := &tasks.InputError{Sentence: "stranger has no write access to acme/api."}
	var answered atomic.Bool
	f.source.brief = func(t tasks.Task) (tasks.Brief, error) {
		if t.Prompt == "of a stranger" || answered.Load() {
			return tasks.Brief{}, refusal
		}
		return tasks.Brief{Keep: true}, nil
	}
	refused := func(id, want string, asked int) {
		t.Helper()
		if e := f.ending(id); e.Kind != tasks.Refused || e.Reason != want || len(f.agent.specs()) != 3 {
			t.Errorf("%d runs, ending %+v", len(f.agent.specs()), e)
		}
		if list, err := f.desk.Questions(t.Context(), id); err != nil || len(list) != asked {
			t.Errorf("asked %+v, %v", list, err)
		}
	}
	refused(f.submit(f.task("a", "of a stranger")), refusal.Sentence, 0)

	id := f.submit(f.task("b", "x"))
	<-s.asked
	answered.Store(true)
	if _, err := f.desk.Answer(t.Context(), id, "", "ann", "yes"); err != nil {
		t.Fatal(err)
	}
	refused(id, refusal.Sentence, 1)
	answered.Store(false)

	stop()
	claim, err := f.store.Claim(t.Context(), f.submit(f.task("c", "x")), 0, "another worker")
	if err == nil {
		_, err = claim.Spend(t.Context(), store.Expense{USD: 1})
	}
	if err == nil {
		err = errors.Join(claim.End(t.Context(), tasks.Ending{Kind: tasks.Answered}.Encode()),
			claim.Release(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	f.talker(s)
	refused(f.submit(f.task("d", "x")),
		"The fleet's budget for today is used up: $10.00 of $10.00. An operator can raise it; a new day begins at midnight UTC.", 0)
}

// Only tasks of the same repository, kind and size count, and of those the latest.
func TestEstimateIsFromTasksLikeIt(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	here := f.task("a", "x")
	here.Repo, here.Kind = "Acme/API", "review"
	other, elsewhere := here, here
	other.Kind, elsewhere.Repo = "fix", "acme/web"
	remember := func(task tasks.Task, lines, n int, usd float64) {
		t.Helper()
		for range n {
			if err := tasks.RememberCost(t.Context(), f.store, task, lines, usd); err != nil {
				t.Fatal(err)
			}
		}
	}
	remember(here, 40, 30, 1)
	remember(here, 40, 19, 2)
	remember(here, 400, 3, 7)
	remember(other, 40, 3, 8)
	remember(elsewhere, 40, 2, 9)
	here.Repo = "acme/api"
	for _, c := range []struct {
		task  tasks.Task
		lines int
		want  tasks.Estimate
	}{
		{here, 50, tasks.Estimate{USD: 2, Tasks: 20}},
		{here, 201, tasks.Estimate{USD: 7, Tasks: 3}},
		{other, 1, tasks.Estimate{USD: 8, Tasks: 3}},
		{elsewhere, 40, tasks.Estimate{}},
		{here, 0, tasks.Estimate{}},
	} {
		if got, err := tasks.EstimateCost(t.Context(), f.store, c.task, c.lines); got != c.want || err != nil {
			t.Errorf("%s %s, %d lines: %+v, %v", c.task.Repo, c.task.Kind, c.lines, got, err)
		}
	}
}
