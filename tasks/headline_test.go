package tasks

import (
	"testing"
	"time"

	"github.com/errand-fleet/errand/forge"
)

func TestHeadline(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC)
	later := now.Add(49 * time.Minute)
	question := Question{Text: "Red or blue?\nBoth are free.", Until: later}
	ended := func(e Ending) Status { return Status{State: "ended", Ending: &e} }
	pull := &Published{Work: Work{Branch: "errand/1"}, PullRequest: forge.PullRequestRef{Number: 12}}
	for name, c := range map[string]struct {
		status     Status
		sign, want string
	}{
		"no worker yet": {Status{State: "waiting", Why: NoWorker}, "⏳", "Waiting: no worker is free yet"},
		"a cap": {Status{
			State: "waiting", Why: BlockedBy(Blocked{Scope: "repo:acme/payments", Runs: 2, Max: 2, Place: 2}),
		}, "⏳", "Waiting: 2nd in line; 2 of 2 runs busy in acme/payments"},
		"a start time": {Status{State: "waiting", Why: NoWorker, At: later}, "⏳", "Waiting: starts about 18:49"},
		"a usage limit": {
			Status{State: "waiting", Why: "the model's usage limit is reached", At: later},
			"⏳",
			"Paused: the model's usage limit is reached; resumes about 18:49",
		},
		"a limit until now": {
			Status{State: "waiting", Why: "the budget is reserved", At: now.Add(soon)},
			"⏳",
			"Waiting: the budget is reserved",
		},
		"before its work": {
			Status{State: "running", Why: "the clone is updated"}, "⏳", "Starting: the clone is updated",
		},
		"at work": {Status{State: "running"}, "⏳", "Working"},
		"a question": {
			Status{State: "running", Questions: []Question{question}},
			"💬",
			"Needs your answer: Red or blue?; until 18:49",
		},
		"being stopped": {
			Status{State: "running", Cancel: "Ann", Questions: []Question{question}}, "⏳", "Stopping",
		},
		"in another's run": {
			Status{State: "absorbed", Into: "x"}, "⏳", "Working: together with an earlier message of its thread",
		},
		"done":           {ended(Ending{Kind: Answered}), "✅", "Done"},
		"a pull request": {ended(Ending{Kind: Answered, Published: pull}), "✅", "Done: PR #12"},
		"what it changes": {
			ended(Ending{Kind: Answered, Published: pull, Changed: Diffstat{3, 40, 12}}), "✅",
			"Done: PR #12, 3 files, +40 −12",
		},
		"not published": {ended(Ending{Kind: Answered, Changed: Diffstat{3, 40, 12}}), "✅", "Done"},
		"a branch": {
			ended(Ending{Kind: Failed, Published: &Published{Work: Work{Branch: "errand/1"}}}), "❌",
			"Failed: branch errand/1",
		},
		"stopped":            {ended(Ending{Kind: Cancelled, By: "Ann"}), "🛑", "Stopped by Ann"},
		"stopped there":      {ended(Ending{Kind: Cancelled, By: Console}), "🛑", "Stopped in the console"},
		"out of time":        {ended(Ending{Kind: TimedOut, Limit: "2h", Published: pull}), "⏱", "Timed out: PR #12"},
		"of a newer version": {ended(Ending{Kind: "novel"}), "❌", "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := c.status.Headline(now)
			if got := h.Text(func(about string, at time.Time) string {
				return about + at.Format("15:04")
			}); got != c.want || h.Sign != c.sign {
				t.Errorf("%s %s, want %s %s", h.Sign, got, c.sign, c.want)
			}
		})
	}
}
