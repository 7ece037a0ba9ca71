package slack

import (
	"fmt"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/taskstest"
)

const requestBurst = 20 // of intake.Pacer

// A thread that asks too fast is informed once and then ignored, at every front door. Other threads are not limited,
// and a stop is always accepted.
func TestCrowdedThread(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Access: Access{Bots: []string{"B0OTHER"}}}, rights.Policy{})
	limiter := taskstest.SlowTurns{Limiter: f.store.Memos}
	f.source = f.process(Config{Access: f.cfg.Access, Limiter: limiter})
	f.listen(t.Context(), f.desk)
	root := f.say(ann, general, "", at+"begin")
	other := f.say(ann, general, "", at+"elsewhere")
	say := func(n int) {
		t.Helper()
		_, err := f.Post(t.Context(), slackfake.Message{
			Channel: general, User: "U0OTHER", BotID: "B0OTHER", ThreadTS: root, Text: fmt.Sprint("and again ", n),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range requestBurst {
		say(n)
	}
	equal(t, "told", len(f.Calls("chat.postEphemeral")), 0)
	equal(t, "tasks", len(f.tasks()), 2+requestBurst)
	for n := range 3 {
		say(n)
	}
	equal(t, "tasks", len(f.tasks()), 2+requestBurst)
	equal(t, "told", len(f.Calls("chat.postEphemeral")), 1)
	equal(t, "sentence", f.Ephemeral(general, "U0OTHER")[0].Text, intake.TooFast)

	f.say(ann, general, root, at+"a mention")
	f.say(bob, general, other, "another thread")
	equal(t, "others", f.prompts()[:2], []string{"another thread", "a mention"})
	f.say(ann, general, root, "stop")
	equal(t, "stopped", f.word(general, ann, 1), intake.Stopping)
}

// Mentions are limited, too. The notice is posted for only one of a mention's events.
func TestCrowdedWithMentions(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	f.source = f.process(Config{Limiter: taskstest.SlowTurns{Limiter: f.store.Memos}})
	f.listen(t.Context(), f.desk)
	root := f.say(ann, general, "", at+"begin")
	for n := range requestBurst + 3 {
		f.say(ann, general, root, fmt.Sprint(at, n))
	}
	equal(t, "tasks", len(f.tasks()), 1+requestBurst)
	equal(t, "told", len(f.Ephemeral(general, ann)), 1)
}
