package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// maxAction is how much of an action is shown, in characters.
const maxAction = 80

// progress is what a status message tells of a run.
type progress struct {
	now   func() time.Time
	began time.Time
	link  string
	wake  chan struct{} // holds one token when there is something new

	mu      sync.Mutex
	working bool
	action  string
	steps   int // tool calls that came back
}

func newProgress(now func() time.Time, link string) *progress {
	return &progress{now: now, began: now(), link: link, wake: make(chan struct{}, 1)}
}

// add takes an event. It does not block.
func (p *progress) add(e agent.Event) {
	p.mu.Lock()
	changed := !p.working
	p.working = true
	switch e.Kind {
	case agent.ToolUse:
		p.action, changed = e.Text, true
	case agent.ToolResult:
		p.steps, changed = p.steps+1, true
	}
	p.mu.Unlock()
	if !changed {
		return // the pieces of an answer, a great many
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// text is the status as it is now, in mrkdwn. The time is in minutes, so that it alone is no reason to edit more often than that.
func (p *progress) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.working {
		return dots("⏳ On it…", p.link)
	}
	state := "⏳ Working"
	if p.action != "" {
		state += ": " + escape(quiet(line(p.action, maxAction)))
	}
	var steps, elapsed string
	if p.steps > 0 {
		steps = fmt.Sprintf("%d steps", p.steps)
	}
	if p.steps == 1 {
		steps = "1 step"
	}
	if d := p.now().Sub(p.began).Truncate(time.Minute); d > 0 {
		elapsed = strings.TrimSuffix(d.String(), "0s")
	}
	return dots(state, steps, elapsed, p.link)
}

// keep writes the text whenever it has changed, but not more often than every interval, and not while Slack wants to be left alone.
// It returns when stop ends; a write that has begun is waited for.
func (p *progress) keep(stop context.Context, last string, interval time.Duration, write func(string) error) {
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	pause := interval // since the message was posted, which counts as a write
	for {
		select {
		case <-time.After(pause):
		case <-stop.Done():
			return
		}
		if text := p.text(); text != last {
			pause = interval
			if limited, ok := errors.AsType[*slack.RateLimitedError](write(text)); ok {
				pause = max(pause, limited.RetryAfter) // and then what is the text by then
				continue
			}
			last = text
			continue
		}
		pause = 0
		select {
		case <-p.wake:
		case <-minute.C:
		case <-stop.Done():
			return
		}
	}
}

// closing is the status of a task that has ended.
func closing(e tasks.Ending, link string) string {
	state := map[tasks.EndingKind]string{
		tasks.Answered:  "✅ Done",
		tasks.TimedOut:  "⏱ Timed out",
		tasks.Stalled:   "⏱ Stalled",
		tasks.Cancelled: "🛑 Cancelled",
		tasks.Refused:   "❌ Not started",
		tasks.Lost:      "❌ Given up",
	}[e.Kind]
	if state == "" {
		state = "❌ Failed"
	}
	duration := ""
	if e.Result.Duration > 0 {
		duration = e.Result.Duration.Round(time.Second).String()
	}
	return dots(state, duration, link)
}

// dots joins what there is.
func dots(parts ...string) string {
	var list []string
	for _, p := range parts {
		if p != "" {
			list = append(list, p)
		}
	}
	return strings.Join(list, " · ")
}
