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

// view is what a status message says, in mrkdwn.
type view struct {
	state  string
	detail string // how far it is; may be empty
}

// message is the view with what can be done about it. The text beside the blocks is for notifications, and for where there are no blocks.
func (v view) message(buttons []button) []slack.MsgOption {
	blocks := []slack.Block{slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, v.state, false, false), nil, nil)}
	if v.detail != "" {
		blocks = append(blocks, slack.NewContextBlock("", slack.NewTextBlockObject(slack.MarkdownType, v.detail, false, false)))
	}
	if len(buttons) > 0 {
		blocks = append(blocks, row(buttons))
	}
	return []slack.MsgOption{v.text(buttons), slack.MsgOptionBlocks(blocks...)}
}

func (v view) text(buttons []button) slack.MsgOption {
	return slack.MsgOptionText(dots(append([]string{v.state, v.detail}, linked(buttons)...)...), false)
}

// progress is what a status message tells of a run.
type progress struct {
	now   func() time.Time
	began time.Time
	wake  chan struct{} // holds one token when there is something new

	mu      sync.Mutex
	working bool
	action  string
	steps   int // tool calls that came back
}

func newProgress(now func() time.Time) *progress {
	return &progress{now: now, began: now(), wake: make(chan struct{}, 1)}
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

// view is the status as it is now. The time is in minutes, so that it alone is no reason to edit more often than that.
func (p *progress) view() view {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.working {
		return view{state: "⏳ On it…"}
	}
	v := view{state: "⏳ Working"}
	if p.action != "" {
		v.state += ": " + escape(quiet(line(p.action, maxAction)))
	}
	var steps, elapsed string
	if p.steps > 0 {
		steps = fmt.Sprintf("%d steps", p.steps)
	}
	if p.steps == 1 {
		steps = "1 step"
	}
	if d := p.now().Sub(p.began).Truncate(time.Minute); d > 0 {
		elapsed = tasks.Lasted(d)
	}
	v.detail = dots(steps, elapsed)
	return v
}

// keep writes the status whenever it has changed, but not more often than every interval, and not while Slack wants to be left alone.
// It returns when stop ends, after a write that has begun, or when there is nothing to write on any more.
func (p *progress) keep(stop context.Context, last view, interval time.Duration, write func(view) error) {
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	pause := interval // since the message was posted, which counts as a write
	for {
		select {
		case <-time.After(pause):
		case <-stop.Done():
			return
		}
		if v := p.view(); v != last {
			err := write(v)
			if errors.Is(err, errNoDisplay) {
				return
			}
			pause = interval
			if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
				pause = max(pause, limited.RetryAfter) // and then what is so by then
				continue
			}
			last = v
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
func closing(e tasks.Ending) view {
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
	v := view{state: state}
	if e.Result.Duration > 0 {
		v.detail = tasks.Lasted(e.Result.Duration)
	}
	return v
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
