package automation

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

// told is a board.
type told struct{ notices []tasks.Notice }

func (b *told) Tell(_ context.Context, n tasks.Notice) error {
	b.notices = append(b.notices, n)
	return nil
}

// The ending of a task is posted to the channel of its schedule.
func TestResults(t *testing.T) {
	t.Parallel()
	f := newFleet(t, utc("2026-05-01 12:30"), rights.Policy{})
	d := f.start(rights.Policy{}, 0, Automation{Name: "loud", When: hourly, Prompt: "Go.", Results: "C0123ABCD"},
		Automation{Name: "quiet", When: hourly, Prompt: "Go."})
	board, log := &told{}, &bytes.Buffer{}
	d.cfg.Board, d.cfg.Log = board, slog.New(slog.NewTextHandler(log, nil))
	d.cfg.May = func(context.Context, string, string) (bool, error) { return true, nil }
	f.look(utc("2026-05-01 12:30"))
	f.look(utc("2026-05-01 13:00"))
	new := f.created()
	if len(new) != 2 {
		t.Fatal(new)
	}
	for _, id := range new {
		report, err := d.Open(t.Context(), f.Status(id).Task)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []tasks.Ending{
			{Kind: tasks.Answered, Result: agent.Result{Text: "Done it."}, At: time.Now()},
			{Kind: tasks.Refused, Reason: "No."},
			{Kind: tasks.Withdrawn},
		} {
			if err := report.Close(t.Context(), e); err != nil {
				t.Error(err)
			}
		}
	}
	if len(board.notices) != 2 {
		t.Fatalf("posted %+v", board.notices)
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log)
	}
	d.cfg.May = func(context.Context, string, string) (bool, error) { return false, nil }
	for _, id := range new {
		report, err := d.Open(t.Context(), f.Status(id).Task)
		if err == nil {
			err = report.Close(t.Context(), tasks.Ending{Kind: tasks.Answered})
		}
		if err != nil || len(board.notices) != 2 {
			t.Errorf("no longer permitted: %v, posted %+v", err, board.notices[2:])
		}
	}
	said := log.String()
	if strings.Count(said, "\n") != 1 || !strings.Contains(said, "-loud channel=C0123ABCD repository=") {
		t.Errorf("logged %q", said)
	}
	d.cfg.Board = nil // of a worker without Slack: another one posts it
	report, err := d.Open(t.Context(), f.Status(new[0]).Task)
	if err == nil {
		err = report.Close(t.Context(), tasks.Ending{Kind: tasks.Answered})
	}
	if !errors.Is(err, tasks.ErrNotHere) {
		t.Errorf("without Slack: %v", err)
	}
	one, two := board.notices[0], board.notices[1]
	if one.Channel != "C0123ABCD" || one.Headline != "Schedule loud" || one.Body != "Done it." ||
		two.Headline != "Schedule loud: No." {
		t.Errorf("posted %+v", board.notices)
	}
}

// Of the tasks that one used up budget refuses, in whatever process, one says so on a day, as often as its outbox tries.
// Another refusal is said by each.
func TestBudgetIsSaidOnceADay(t *testing.T) {
	t.Parallel()
	hook := alerts()
	hook.Results = "C0123ABCD"
	f := newHooks(t, 2, rights.Policy{}, hook)
	board := &told{}
	for _, d := range f.doors {
		d.cfg.Board, d.cfg.May = board, func(context.Context, string, string) (bool, error) { return true, nil }
	}
	budget := func(usd float64) string {
		return rights.Budgets{}.Refusal(&store.OverBudget{Spending: store.Spending{Scope: store.Fleet, Budget: usd}}).Option
	}
	for i, c := range []struct {
		task, about, at string
		says            bool
	}{
		{"a", budget(5), "2026-05-01 23:58", true},
		{"b", budget(5), "2026-05-01 23:59", false},
		{"b", "", "2026-05-01 23:59", true},
		{"a", budget(5), "2026-05-01 23:58", true},
		{"c", budget(6), "2026-05-01 23:59", true},
		{"d", budget(6), "2026-05-01 23:59", false},
		{"b", budget(5), "2026-05-02 00:01", true},
		{"a", budget(5), "2026-05-02 00:02", false},
		{"c", budget(5), "2026-05-01 23:59", false},
	} {
		d := f.doors[i%2]
		report, err := d.Open(t.Context(), d.task(hook, c.task, c.task, "Go."))
		if err != nil {
			t.Fatal(err)
		}
		before := len(board.notices)
		err = report.Close(t.Context(), tasks.Ending{Kind: tasks.Refused, Option: c.about, At: utc(c.at)})
		if says := len(board.notices) > before; err != nil || says != c.says {
			t.Errorf("%+v: says it: %t, %v", c, says, err)
		}
	}
}
