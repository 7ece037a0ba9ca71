package slack

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// Each person's first vote on an answer is saved. An ending without an answer has no vote buttons.
func TestVotes(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	task, claim := f.running("count")
	final := f.end(task, claim, answered("Forty-two."))
	f.press(ann, final, render.ActionGood)
	f.told(ann, thanks)
	f.press(ann, final, render.ActionBad)
	f.told(ann, voted+"👍")
	f.press(bob, final, render.ActionBad)
	f.told(bob, thanks)
	equal(t, "votes", f.state(task.ID).Votes, []tasks.Vote{
		// their names in Slack
		{Person: strings.ToLower(ann), Vote: render.ActionGood}, {Person: strings.ToLower(bob), Vote: render.ActionBad},
	})

	if list := render.Console(nil).Final(task, ann, tasks.Ending{Kind: tasks.Lost}); len(list[0].Buttons) != 1 {
		t.Errorf("asked about nothing: %+v", list)
	}
}

// A bad vote asks for its reason, which is kept with it. The vote counts without one, and without the dialog.
func TestReasonOfVote(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{"HTTP": {}, "socket": {AppToken: "xapp-test"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t, Config{}, rights.Policy{People: people.People{{Name: "bob", Slack: bob}}})
			task, claim := f.running("count")
			cfg.Redact = strings.NewReplacer("hunter2", "[redacted]").Replace
			f.source = f.process(cfg)
			f.listen(t.Context(), f.desk)
			if cfg.AppToken != "" {
				f.bySocket()
			}
			final := f.end(task, claim, answered("Forty-two."))
			votes := func() []tasks.Vote { return f.state(task.ID).Votes }

			f.Fail("views.open", slackfake.Failure{Error: "internal_error"})
			f.press(bob, final, render.ActionBad)
			f.told(bob, thanks)
			equal(t, "without a dialog", votes(), []tasks.Vote{{Person: "bob", Vote: "bad"}})
			f.press(bob, final, render.ActionBad)
			f.settle()
			f.submit(bob, " It is\n43, says hunter2. ")
			equal(t, "the reason", votes(), []tasks.Vote{{
				Person: "bob", Vote: "bad", Reason: "It is\n43, says [redacted].",
			}})
			f.press(bob, final, render.ActionBad)
			f.settle()
			f.submit(bob, strings.Repeat("é", render.MaxVoteReason+1))
			equal(t, "a long one", votes(), []tasks.Vote{{
				Person: "bob", Vote: "bad", Reason: strings.Repeat("é", render.MaxVoteReason-1) + "…",
			}})

			f.press(ann, final, render.ActionGood)
			f.settle() // presses are dealt with at once
			f.press(ann, final, render.ActionBad)
			f.told(ann, voted+"👍")
			equal(t, "dialogs", len(f.Views(ann)), 0)
		})
	}
}
