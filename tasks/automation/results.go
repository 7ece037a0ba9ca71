package automation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// origin is the return address of a task.
type origin struct {
	Channel string `json:"results"`
}

// originIn returns the origin of a task whose ending goes to a channel; nil if channel is empty.
func originIn(channel string) json.RawMessage {
	if channel == "" {
		return nil
	}
	body, _ := json.Marshal(origin{channel}) // a string cannot fail
	return body
}

// Capabilities are none for tasks: nobody reads along.
func (s *Source) Capabilities() tasks.Capabilities { return tasks.Capabilities{Diagnose: s.Diagnose} }

// Open returns a report that posts the ending to the channel of the automation, if it has one. It shows nothing before.
func (s *Source) Open(_ context.Context, t tasks.Task) (tasks.Report, error) {
	var o origin
	if t.Origin != nil {
		if err := json.Unmarshal(t.Origin, &o); err != nil {
			return nil, fmt.Errorf("read origin of %s: %w", t.ID, err)
		}
	}
	if o.Channel == "" {
		return tasks.NoReport{}, nil
	}
	return result{s.cfg, t, o.Channel}, nil
}

// result is the report of a task whose ending is posted to a channel.
type result struct {
	cfg     Config
	task    tasks.Task
	channel string
}

// Update does nothing.
func (result) Update(agent.Event) {}

// over returns a memo about requests over budget.
func (c Config) over(name string) intake.Memo[string] {
	return intake.Memo[string]{Memory: c.Memory, Name: "over/" + name, Log: c.Log}
}

// Close posts the ending if it may be posted now. Of the tasks of an automation that a used up budget refuses on a day,
// one says so: many may have waited for their turn. A raised budget is another one.
func (r result) Close(ctx context.Context, e tasks.Ending) error {
	if e.Kind == tasks.Withdrawn {
		return nil
	}
	if r.cfg.Board == nil {
		return fmt.Errorf("post result of %s: %w", r.task.Actor, tasks.ErrNotHere)
	}
	may, err := r.cfg.May(ctx, r.channel, r.task.Repo)
	if err != nil {
		return err
	}
	if !may {
		r.cfg.Log.Warn("result not posted: answers about the repository may not be posted in the channel",
			"run", r.task.ID, "channel", r.channel, "repository", r.task.Repo)
		return nil
	}
	if about, budget, _ := strings.Cut(e.Option, " "); about == tasks.OptionBudget {
		says := false
		who := r.cfg.over(r.task.Actor + "/" + e.At.UTC().Format(time.DateOnly) + "/" + budget)
		if err := who.Change(ctx, func(id *string) error {
			*id = cmp.Or(*id, r.task.ID)
			says = *id == r.task.ID
			return nil
		}); err != nil || !says {
			return err
		}
	}
	kind, name, _ := strings.Cut(r.task.Actor, ":")
	headline := strings.ToUpper(kind[:1]) + kind[1:] + " " + name
	if sentence := e.Sentence(); sentence != "" {
		headline += ": " + sentence
	}
	if err := r.cfg.Board.Tell(ctx, tasks.Notice{
		Task: r.task, Ending: e, Channel: r.channel, Headline: headline, Body: e.Body(),
	}); err != nil {
		return fmt.Errorf("post result of %s: %w", r.task.Actor, err)
	}
	return nil
}
