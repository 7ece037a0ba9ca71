package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// All processes of the fleet share Slack's limit: with any number of busy threads, edits stay within the fleet's rate.
func TestEditsOfTheFleet(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	cfg := Config{Interval: time.Millisecond, Limiter: f.store.Memos}
	began := time.Now()
	for _, s := range []*Source{f.process(cfg), f.process(cfg)} {
		for range 10 {
			f.open(s, f.task("")).Update(agent.Event{Kind: agent.ToolUse, Text: "Step"})
		}
	}
	f.until("as many as may come at once, and one", func() bool { return len(f.Calls("chat.update")) > editBurst })
	if n, most := len(f.Calls("chat.update")), editBurst+1+int(time.Since(began)/editEvery); n > most {
		t.Errorf("%d edits, want at most %d", n, most)
	}
}

// No minute, wherever it starts, has more edits than Slack permits.
func TestEditsOfAMinute(t *testing.T) {
	t.Parallel()
	const tier = 50
	if n := finalBurst + int(time.Minute/editEvery); n > tier {
		t.Errorf("%d edits in a minute, Slack takes %d", n, tier)
	}
}

// The last edit of a status message has its own budget. If that is used up or unknown, the edit is made anyway.
func TestEndsComeFirst(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	s := f.process(Config{Interval: time.Millisecond, Limiter: f.store.Memos})
	task := f.task("")
	for range editBurst {
		if err := s.client.takeEditTurn(t.Context(), mustOrigin(t, task), editBurst); err != nil {
			t.Fatal(err)
		}
	}
	r := f.open(s, task)
	d := &display{client: s.client, origin: r.origin, ts: f.posted(task)[0].TS, log: r.log}
	err := d.show(t.Context(), render.Status{State: "later"}, nil)
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); !ok || limited.RetryAfter <= 0 ||
		limited.RetryAfter > editEvery+scatter {
		t.Errorf("beyond the limit: %v", err)
	}
	if err := r.Close(t.Context(), answered("yes")); err != nil {
		t.Fatal(err)
	}
	equal(t, "status", f.status(task), "✅ Done (2m5s)")
	equal(t, "edits", len(f.Calls("chat.update")), 1)
}

// broken is a limiter whose Redis is unreachable.
type broken struct{}

func (broken) Allow(context.Context, string, time.Duration, int) (time.Duration, error) {
	return 0, errors.New("no Redis")
}

func TestEditsWithoutRedis(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{Interval: time.Millisecond, Limiter: broken{}})
	task := w.task("")
	r := w.open(w.source, task)
	r.Update(agent.Event{Kind: agent.ToolUse, Text: "Step"})
	if !w.log.wait(t.Context(), "no Redis") {
		t.Fatal("no notice was posted")
	}
	if err := r.Close(t.Context(), answered("yes")); err != nil {
		t.Fatal(err)
	}
	equal(t, "status", w.status(task), "✅ Done (2m5s)")
	equal(t, "edits", len(w.Calls("chat.update")), 1)
}

// If Slack refuses a message with blocks, it is shown without them from then on, and the old blocks are removed.
func TestStatusInPlainText(t *testing.T) {
	t.Parallel()
	for _, drop := range []bool{false, true} {
		t.Run(fmt.Sprint("drop ", drop), func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, Config{Interval: time.Millisecond, ConsoleURL: "https://e.example"},
				slackfake.Config{DropBlocks: drop})
			task := w.task("")
			r := w.open(w.source, task)
			w.Fail("chat.update", slackfake.Failure{Error: "invalid_blocks"})
			r.Update(agent.Event{Kind: agent.ToolUse, Text: "One"})
			w.until("the first", func() bool { return strings.Contains(w.status(task), "one") })
			r.Update(agent.Event{Kind: agent.ToolUse, Text: "Two"})
			w.until("the second", func() bool { return strings.Contains(w.status(task), "two") })
			m := w.posted(task)[0]
			equal(t, "text", m.Text, "⏳ Working: two · <https://e.example/tasks/"+task.ID+"|Log>")
			equal(t, "blocks", string(m.Blocks), "")
			equal(t, "edits", len(w.Calls("chat.update")), 3)
		})
	}
	w := newWorkspace(t, Config{})
	w.Fail("chat.postMessage", slackfake.Failure{Error: "invalid_blocks"})
	task := w.task("")
	w.open(w.source, task)
	equal(t, "status that was posted so", w.status(task), "⏳ On it…")
}

// A message that can no longer be edited is left unchanged, and the task is still answered.
func TestStatusThatIsGone(t *testing.T) {
	t.Parallel()
	for _, why := range []string{"message_not_found", "edit_window_closed", "cant_update_message"} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, Config{Interval: time.Millisecond})
			task := w.task("")
			r := w.open(w.source, task)
			w.Fail("chat.update", slackfake.Failure{Error: why, Times: -1})
			r.Update(agent.Event{Kind: agent.ToolUse, Text: "One"})
			<-r.progress.writer.Done()
			r.Update(agent.Event{Kind: agent.ToolUse, Text: "Two"})
			equal(t, "edits", len(w.Calls("chat.update")), 1)
			if err := w.source.Waits(t.Context(), task, tasks.QueuedHeadline(1)); err != nil {
				t.Errorf("a wait would be shown again: %v", err)
			}
			equal(t, "edits", len(w.Calls("chat.update")), 2)
			if err := r.Close(t.Context(), answered("yes")); err != nil {
				t.Error(err)
			}
			equal(t, "parts", partsOf(w.posted(task)), []string{"status", "final/1"})
		})
	}
}
