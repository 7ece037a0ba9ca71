package slack

import (
	"testing"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// Each person's first vote on an answer is saved. Without a store for votes there are no vote buttons.
func TestVotes(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, tasks.Policy{})
	task, claim := f.running("count")
	f.source = f.process(Config{Ballot: f.store.Votes})
	f.listen(t.Context(), f.desk)
	final := f.end(task, claim, answered("Forty-two."))
	f.press(ann, final, render.ActionGood)
	f.told(ann, thanks)
	f.press(ann, final, render.ActionBad)
	f.told(ann, voted+"👍")
	f.press(bob, final, render.ActionBad)
	f.told(bob, thanks)
	got, err := f.store.Votes.Of(t.Context(), task.ID)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "votes", got, map[string]string{ann: render.ActionGood, bob: render.ActionBad})

	if list := render.Console(nil).Final(task, ann, answered("Forty-two."), f.process(Config{}).votes); len(list[0].Buttons) != 1 {
		t.Errorf("asked without a ballot: %+v", list)
	}
	if list := render.Console(nil).Final(task, ann, tasks.Ending{Kind: tasks.Lost}, f.source.votes); len(list[0].Buttons) != 1 {
		t.Errorf("asked about nothing: %+v", list)
	}
}
