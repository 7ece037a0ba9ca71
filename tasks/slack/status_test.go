package slack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

func TestStatusText(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	p := newProgress(func() time.Time { return now })
	said := func(what, want string) {
		t.Helper()
		equal(t, what, p.status().State, want)
	}
	said("at first", "⏳ On it…")
	p.add(agent.Event{Kind: agent.Started, Text: "opus"})
	said("started", "⏳ Working")
	p.add(agent.Event{Kind: agent.Notice, Text: "Running the check"})
	said("a notice", "⏳ Working")
	p.add(agent.Event{Kind: agent.ToolUse, Text: "Running echo '<!channel> & @here'"})
	said("a tool", "⏳ Working: running echo '&lt;\u200b!channel&gt; &amp; @\u200bhere'")
	p.add(agent.Event{Kind: agent.Text, Text: "Let me see."})
	p.add(agent.Event{Kind: agent.ToolResult, Text: "ok"})
	said("its result", "⏳ Working: running echo '&lt;\u200b!channel&gt; &amp; @\u200bhere' (1 step)")
	now = now.Add(59 * time.Second)
	p.add(agent.Event{Kind: agent.ToolUse, Text: "Reading a\nb"})
	p.add(agent.Event{Kind: agent.ToolResult})
	said("within a minute", "⏳ Working: reading a b (2 steps)")
	now = now.Add(2*time.Hour + 3*time.Minute)
	said("later", "⏳ Working: reading a b (2 steps, 2h3m)")
	p.add(agent.Event{Kind: tasks.Asked, Text: "Red or blue?"})
	said("a question", "💬 Needs your answer")
	p.add(agent.Event{Kind: tasks.Replied, Text: "red"})
	said("answered", "⏳ Working: reading a b (2 steps, 2h3m)")
}

// said returns a status in one line.
func said(s render.Status) string { return s.State }

func TestClosingStatus(t *testing.T) {
	t.Parallel()
	e := tasks.Ending{Result: agent.Result{Duration: 125*time.Second + 400*time.Millisecond}}
	for kind, want := range map[tasks.EndingKind]string{
		tasks.Answered: "✅ Done", tasks.Failed: "❌ Failed", tasks.TimedOut: "⏱ Timed out", tasks.Stalled: "⏱ Stalled",
		tasks.Cancelled: "🛑 Stopped", tasks.Refused: "❌ Not started", tasks.Lost: "❌ Given up", "novel": "❌ Failed",
	} {
		e.Kind = kind
		equal(t, string(kind), said(render.Ended(e)), want+" (2m5s)")
	}
	equal(t, "nothing ran", said(render.Ended(tasks.Ending{Kind: tasks.Cancelled})), "🛑 Stopped")
}

// board records what a progress writes, with the time of each edit.
type board struct {
	began time.Time
	fails []error // of the next edits

	mu    sync.Mutex
	edits []string
}

func (b *board) write(v render.Status) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.edits = append(b.edits, fmt.Sprintf("%s %s", time.Since(b.began), said(v)))
	if len(b.fails) == 0 {
		return nil
	}
	err := b.fails[0]
	b.fails = b.fails[1:]
	return err
}

// keeping runs a progress within a bubble until the test ends it.
func keeping(t *testing.T, last render.Status, b *board) (p *progress, stop func()) {
	t.Helper()
	b.began = time.Now()
	p = newProgress(time.Now)
	p.keep(t.Context(), last, 3*time.Second, b.write)
	return p, func() { _ = p.writer.Close(context.WithoutCancel(t.Context())) }
}

// pass lets time pass within a bubble.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestKeepWritesTheLatest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &board{}
		p, stop := keeping(t, render.Status{State: "⏳ On it…"}, b)
		pass(time.Millisecond) // so that no event is at the time of an edit
		for i := range 10 {    // every second
			p.add(agent.Event{Kind: agent.ToolUse, Text: fmt.Sprint("Step ", i)})
			p.add(agent.Event{Kind: agent.Text, Text: "…"})
			pass(time.Second)
		}
		pass(40 * time.Second)
		p.add(agent.Event{Kind: agent.ToolUse, Text: "Step 10"}) // after a pause: immediately
		p.add(agent.Event{Kind: agent.ToolUse, Text: "Step 10"}) // nothing new
		pass(3 * time.Minute)
		stop()
		p.add(agent.Event{Kind: agent.ToolUse, Text: "after the end"})
		pass(time.Minute)
		equal(t, "edits", b.edits, []string{
			"3s ⏳ Working: step 2", "6s ⏳ Working: step 5", "9s ⏳ Working: step 8", "12s ⏳ Working: step 9",
			"50.001s ⏳ Working: step 10", "1m0s ⏳ Working: step 10 (1m)", "2m0s ⏳ Working: step 10 (2m)",
			"3m0s ⏳ Working: step 10 (3m)",
		})
	})
}

// A status message that is found may have any text. It is corrected, except by a report that is only opened to be
// closed.
func TestKeepOfAFoundMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &board{}
		_, stop := keeping(t, render.Status{}, b)
		stop()
		equal(t, "edits", b.edits, []string(nil))
		_, stop = keeping(t, render.Status{}, b)
		pass(10 * time.Second)
		stop()
		equal(t, "edits", b.edits, []string{"3s ⏳ On it…"})
	})
}

func TestKeepLeavesSlackAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &board{fails: []error{
			&slack.RateLimitedError{RetryAfter: 30 * time.Second},
			fmt.Errorf("edit: %w", &slack.RateLimitedError{RetryAfter: time.Second}), nil, errors.New("no"),
		}}
		p, stop := keeping(t, render.Status{}, b)
		p.add(agent.Event{Kind: agent.ToolUse, Text: "One"})
		pass(10 * time.Second)
		p.add(agent.Event{Kind: agent.ToolUse, Text: "Two"})
		pass(34 * time.Second)
		p.add(agent.Event{Kind: agent.ToolUse, Text: "Three"}) // fails, and is not retried
		pass(10 * time.Second)
		p.add(agent.Event{Kind: agent.ToolUse, Text: "Four"})
		pass(time.Second)
		stop()
		equal(t, "edits", b.edits, []string{
			"3s ⏳ Working: one", "33s ⏳ Working: two", "36s ⏳ Working: two", "44s ⏳ Working: three",
			"54s ⏳ Working: four",
		})
	})
}
