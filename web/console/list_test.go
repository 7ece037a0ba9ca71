package console

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/web/internal/view"
)

// A search that stopped early says how far back it went.
func TestListSaysWhereItStopped(t *testing.T) {
	t.Parallel()
	next := tasks.NewID(time.UnixMicro(1700000000000000), "test", "x")
	v := newListView(desk.Filter{Text: "x", Limit: 50}, view.Snapshot{}, time.Now())
	v.addPage(view.Listing{Next: next}, nil)
	if !v.SearchedTo.Equal(time.Unix(1_700_000_000, 0)) || v.Older != "/?before="+next+"&text=x" {
		t.Errorf("searched to %s, then %q", v.SearchedTo, v.Older)
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	now := time.UnixMicro(1700000000000000).UTC()
	began := now.Add(-90 * time.Minute)
	published := &tasks.Published{}
	published.PullRequest.Number = 7
	for name, test := range map[string]struct {
		status tasks.Status
		want   row
	}{
		"waiting": {
			tasks.Status{State: "waiting", Why: "The usage limit is reached.", At: now.Add(time.Hour)},
			row{
				State: "waiting", Label: "Paused", Note: "The usage limit is reached.", NoteWhen: "resumes about ",
				NoteUntil: now.Add(time.Hour),
			},
		},
		"was to wait": {tasks.Status{State: "waiting", At: began}, row{State: "waiting", Label: "Waiting"}},
		"running": {
			tasks.Status{State: "running", Started: began}, row{State: "running", Label: "Working", Took: "1h"},
		},
		"asking": {
			tasks.Status{State: "running", Started: began, Questions: []tasks.Question{{Text: "Which?"}}},
			row{State: "running", Label: "Needs you", Asking: true, Took: "1h", Note: "Which?"},
		},
		"ended": {
			tasks.Status{State: "ended", Started: began, Ended: began.Add(2 * time.Minute), Ending: &tasks.Ending{
				Kind: tasks.Cancelled, By: "ann", Result: agent.Result{CostUSD: 0.5},
			}},
			row{
				State: "ended", Label: "Stopped", Ending: "cancelled", Took: "2m", Cost: "$0.50",
				Note: "Stopped by ann. Ask again to continue.",
			},
		},
		"timed out with a pull request": {
			tasks.Status{State: "ended", Ended: now, Unposted: "not posted", Ending: &tasks.Ending{
				Kind: tasks.TimedOut, Published: published,
			}},
			row{State: "ended", Label: "Timed out", Ending: "timed_out", Note: "PR #7", Late: "not posted"},
		},
		"ended before it began": {
			tasks.Status{State: "ended", Ended: now, Ending: &tasks.Ending{Kind: tasks.Withdrawn}},
			row{State: "ended", Label: "Withdrawn", Ending: "withdrawn", Note: "Withdrawn."},
		},
	} {
		test.status.Created = now.Add(-3 * 24 * time.Hour)
		test.want.Created, test.want.Age = test.status.Created, "3d"
		if got := newRow(new(view.Reader).NewTask(test.status), now); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

// While more tasks may wait than were looked at, the list does not say that none does.
func TestListDoesNotKnowWhatWaits(t *testing.T) {
	t.Parallel()
	none := func([]tasks.Status) []row { return nil }
	v := newListView(desk.Filter{Limit: view.DefaultList}, view.Snapshot{}, time.Now())
	v.addSections(desk.Overview{Partial: true}, none)
	want := []section{
		{Name: "running", Title: "Running", Count: "0", Empty: "Nothing is running."},
		{Name: "waiting", Title: "Waiting", Empty: "None of the newest tasks waits.", All: "/?state=waiting"},
	}
	if diff := cmp.Diff(want, v.Sections); v.None || diff != "" {
		t.Errorf("it says that there are no tasks: %t; sections (-want +got):\n%s", v.None, diff)
	}
}
