package worker

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// looking is a fleet whose source wants a second look at each answer. look is what the second run does.
func looking(t *testing.T, look func(context.Context, agent.Spec, agent.Host) (agent.Result, error)) *fleet {
	f := newFleet(t)
	f.source.brief = func(tasks.Task) (tasks.Brief, error) {
		return tasks.Brief{
			System: "You review.", Schema: json.RawMessage(`{"type": "object"}`),
			SecondLook: func(_ context.Context, answer json.RawMessage) *tasks.SecondLook {
				return &tasks.SecondLook{
					Doing: "Checking it", Prompt: "Is it so?", System: "You check " + string(answer) + ".",
					Schema: json.RawMessage(`{"type": "string"}`),
					Merge: func(said json.RawMessage) (json.RawMessage, error) {
						switch string(said) {
						case "":
							return json.RawMessage(`"unchecked"`), nil
						case `"nonsense"`:
							return nil, errors.New("no verdicts")
						}
						return said, nil
					},
				}
			},
		}, nil
	}
	f.agent.do = func(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error) {
		if s.Prompt.Text == "Is it so?" {
			return look(ctx, s, h)
		}
		r := answer("I have found one.")
		r.CostUSD, r.Duration, r.Structured = 0.4, time.Minute, json.RawMessage(`"one"`)
		r.Usage.Input, r.API = 10, &agent.API{Calls: 1}
		return r, nil
	}
	return f
}

// The second run has a conversation of its own at the same place, and what the first has left; its answer is merged,
// and its cost is the task's.
func TestSecondLook(t *testing.T) {
	t.Parallel()
	f := looking(t, func(_ context.Context, _ agent.Spec, h agent.Host) (agent.Result, error) {
		for _, e := range []agent.Event{
			{Kind: agent.Started, Text: "m"},
			{Kind: agent.Text, Text: "Hm."},
			{Kind: agent.ToolUse, Text: "Reading a.go", ToolID: "t"},
			{Kind: agent.Used, CostUSD: 0.2, Usage: &agent.Usage{Input: 5}},
			{Kind: agent.TurnEnd, Text: "So."},
		} {
			h.Event(e)
		}
		if _, more := h.Idle(t.Context()); more {
			t.Error("messages reach the second look")
		}
		if h.Permit(t.Context(), agent.ToolRequest{Tool: "Bash"}).Allow {
			t.Error("it may do more than the first run")
		}
		r := answer("It is so.")
		r.CostUSD, r.Structured = 0.2, json.RawMessage(`"one, which holds"`)
		r.Usage.Input = 5
		return r, nil
	})
	task := f.task("a", "x")
	task.Options.MaxUSD, task.Options.Limit = 1, time.Hour
	id := f.submit(task)
	f.worker()
	e := f.ending(id)
	if e.Kind != tasks.Answered || string(e.Result.Structured) != `"one, which holds"` ||
		e.Result.Text != "I have found one." || e.Result.CostUSD < 0.59 || e.Result.CostUSD > 0.61 || e.Result.Usage.Input != 15 {
		t.Errorf("%+v", e)
	}
	if rec, err := f.store.Get(t.Context(), id); err != nil || rec.Cost < 0.59 || rec.Cost > 0.61 {
		t.Errorf("the task's cost is %v, %v", rec.Cost, err)
	}
	runs := f.agent.specs()
	if len(runs) != 2 {
		t.Fatal(ids(runs))
	}
	first, second := runs[0], runs[1]
	if second.ID != first.ID || second.Dir != first.Dir || second.Profile != first.Profile || second.Resume != nil ||
		second.Prompt.ID == first.Prompt.ID || !strings.HasPrefix(second.System, `You check "one".`) ||
		second.MaxUSD < 0.59 || second.MaxUSD > 0.61 || second.Limit != 59*time.Minute || string(second.Schema) != `{"type": "string"}` {
		t.Errorf("second look: %+v", second)
	}
	var shown []string
	f.source.mu.Lock()
	for _, e := range f.source.told {
		if shown = append(shown, string(e.Kind)+" "+e.Text); e.Kind == agent.Used && (e.CostUSD < 0.59 || e.Usage.Input != 15) {
			t.Errorf("%+v", e)
		}
	}
	f.source.mu.Unlock()
	if diff := cmp.Diff([]string{"notice Checking it", "tool_use Reading a.go", "used "}, shown); diff != "" {
		t.Error(diff)
	}
}

// However a second look fails, the answer counts, and its source hears that it is unchecked.
func TestSecondLookFails(t *testing.T) {
	t.Parallel()
	give := func(change func(*agent.Result)) func() (agent.Result, error) {
		return func() (agent.Result, error) {
			r := answer("")
			change(&r)
			return r, nil
		}
	}
	for name, look := range map[string]func() (agent.Result, error){
		"nothing runs":    func() (agent.Result, error) { return agent.Result{}, agent.NewError(agent.ClassStart, "x") },
		"no answer":       give(func(*agent.Result) {}),
		"nonsense":        give(func(r *agent.Result) { r.Structured = json.RawMessage(`"nonsense"`) }),
		"no time":         give(func(r *agent.Result) { r.Outcome = agent.Limit }),
		"a failure":       give(func(r *agent.Result) { r.Outcome, r.Error = agent.Failed, agent.NewError(agent.ClassOverloaded, "x") }),
		"over the budget": give(func(r *agent.Result) { r.Outcome, r.Error = agent.Failed, agent.NewError(agent.ClassBudget, "x") }),
		"stopped by none": give(func(r *agent.Result) { r.Outcome = agent.Stopped }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := looking(t, func(context.Context, agent.Spec, agent.Host) (agent.Result, error) { return look() })
			id := f.submit(f.task("a", "x"))
			f.worker()
			if e := f.ending(id); e.Kind != tasks.Answered || string(e.Result.Structured) != `"unchecked"` ||
				e.Result.Text != "I have found one." || e.Result.Error != nil {
				t.Errorf("%+v", e)
			}
		})
	}
	f := looking(t, func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		t.Error("a second look although nothing is left for it")
		return agent.Result{}, nil
	})
	task := f.task("a", "x")
	task.Options.MaxUSD = 0.4
	id := f.submit(task)
	f.worker()
	if e := f.ending(id); e.Kind != tasks.Answered || string(e.Result.Structured) != `"unchecked"` {
		t.Errorf("%+v", e)
	}
}

// A person who cancels during the second look cancels the task. A worker that shuts down then does not: the answer is
// there.
func TestSecondLookIsStopped(t *testing.T) {
	t.Parallel()
	started := make(chan string, 1)
	f := looking(t, untilStopped(started))
	id := f.submit(f.task("a", "x"))
	stop := f.worker()
	<-started
	if _, err := f.desk.Cancel(t.Context(), id, "ann"); err != nil {
		t.Fatal(err)
	}
	if e := f.ending(id); e.Kind != tasks.Cancelled || e.By != "ann" {
		t.Errorf("%+v", e)
	}
	id = f.submit(f.task("b", "x"))
	<-started
	stop()
	if e := f.ending(id); e.Kind != tasks.Answered || string(e.Result.Structured) != `"unchecked"` {
		t.Errorf("%+v", e)
	}
}

// A cancel while the source prepares its question counts, although no second run is there to be stopped.
func TestCancelBeforeTheSecondLook(t *testing.T) {
	t.Parallel()
	f := looking(t, func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		t.Error("a second look at a task that is cancelled")
		return agent.Result{}, nil
	})
	f.source.brief = func(task tasks.Task) (tasks.Brief, error) {
		return tasks.Brief{SecondLook: func(ctx context.Context, _ json.RawMessage) *tasks.SecondLook {
			if _, err := f.desk.Cancel(t.Context(), task.ID, "ann"); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return &tasks.SecondLook{Merge: func(json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(`"unchecked"`), nil
			}}
		}}, nil
	}
	id := f.submit(f.task("a", "x"))
	f.worker()
	if e := f.ending(id); e.Kind != tasks.Cancelled || e.By != "ann" {
		t.Errorf("%+v", e)
	}
}

// A task whose worker has died gets no second look: it may be what the worker died of.
func TestNoSecondLookAfterACrash(t *testing.T) {
	t.Parallel()
	f := looking(t, func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		t.Error("a second look after a crash")
		return agent.Result{}, nil
	})
	task := f.task("a", "x")
	id := f.submit(task)
	f.died(task, 1)
	f.worker()
	if e := f.ending(id); e.Kind != tasks.Answered || string(e.Result.Structured) != `"unchecked"` {
		t.Errorf("%+v", e)
	}
}

// A source that cannot ask about an answer says so in it, without another run. If even that fails, the answer stays.
func TestSecondLookWithoutAQuestion(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{`"unchecked"`: nil, `"one"`: errors.New("too long")} {
		f := looking(t, func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
			t.Error("a run without a question")
			return agent.Result{}, nil
		})
		f.source.brief = func(tasks.Task) (tasks.Brief, error) {
			return tasks.Brief{SecondLook: func(context.Context, json.RawMessage) *tasks.SecondLook {
				return &tasks.SecondLook{Merge: func(said json.RawMessage) (json.RawMessage, error) {
					if said != nil {
						t.Errorf("merge %s", said)
					}
					return json.RawMessage(`"unchecked"`), err
				}}
			}}, nil
		}
		id := f.submit(f.task("a", "x"))
		f.worker()
		if e := f.ending(id); e.Kind != tasks.Answered || string(e.Result.Structured) != want {
			t.Errorf("%+v", e)
		}
	}
}

// What a second look learns about the credential and the network counts as if the first run had learned it.
func TestSecondLookTellsWhatItLearned(t *testing.T) {
	t.Parallel()
	f := looking(t, func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		r := limited(time.Now().Add(time.Hour))
		r.API, r.Resources.CPU = &agent.API{Calls: 2, Errors: map[int]int{429: 2}}, time.Second
		r.Egress = &agent.EgressReport{Refused: []agent.EgressRefusal{{Host: "a.example:443", Why: "which is closed"}}, Refusals: 2}
		return r, nil
	})
	id := f.submit(f.task("a", "x"))
	f.worker(withCredential)
	e := f.ending(id)
	if r := e.Result; r.Resources.CPU != time.Second || r.API == nil || r.API.Calls != 3 || r.API.Errors[429] != 2 {
		t.Errorf("%+v, calls %+v", r.Resources, r.API)
	}
	if g := e.Result.Egress; e.Kind != tasks.Answered || g == nil || g.Refusals != 2 || len(g.Refused) != 1 {
		t.Errorf("%+v, egress %+v", e, g)
	}
	known, err := f.store.Credentials.List(t.Context())
	if err != nil || len(known) != 1 || known[0].Until.IsZero() {
		t.Errorf("the limit is not known: %+v, %v", known, err)
	}
}
