package slack

import (
	"testing"

	"github.com/errand-fleet/errand/tasks"
)

// What people think of an answer is kept, of each the first word. Where nobody would keep it they are not asked.
func TestVotes(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, tasks.Policy{})
	task, claim := f.running("count")
	f.source = f.process(Config{Ballot: f.store.Votes})
	f.listen(t.Context(), f.desk)
	final := f.end(task, claim, answered("Forty-two."))
	f.press(ann, final, good)
	f.told(ann, thanks)
	f.press(ann, final, bad)
	f.told(ann, voted+"👍")
	f.press(bob, final, bad)
	f.told(bob, thanks)
	got, err := f.store.Votes.Of(t.Context(), task.ID)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "votes", got, map[string]string{ann: good, bob: bad})

	if list := f.process(Config{}).voteButtons("1"); len(list) != 0 {
		t.Errorf("asked for nobody: %+v", list)
	}
	if list := f.source.finalButtons(task, tasks.Ending{Kind: tasks.Lost}); len(list) != 1 {
		t.Errorf("asked about nothing: %+v", list)
	}
}
