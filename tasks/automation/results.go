package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// Results posts the endings of tasks that no person asked for, such as those of schedules.
type Results struct {
	Board Board // nil: this process cannot post, and leaves it to another one
	// May reports whether answers about a repository, or about none, may be posted in a channel. Required with Board.
	May func(ctx context.Context, channel, repo string) (bool, error)
	Log *slog.Logger // required with Board
}

// Board posts notices.
type Board interface {
	// Tell posts a notice once, even if it is called again with it in another process. An *tasks.ErrLater says when to
	// try again. An HTTP attempt lasts at most 10 s.
	Tell(ctx context.Context, n tasks.Notice) error
}

// resultsOrigin is the return address of such a task.
type resultsOrigin struct {
	Channel string `json:"results"`
}

// ResultsIn returns the origin of a task whose ending goes to a channel; nil if channel is empty.
func ResultsIn(channel string) json.RawMessage {
	if channel == "" {
		return nil
	}
	origin, _ := json.Marshal(resultsOrigin{channel}) // a string cannot fail
	return origin
}

// Open returns the report of a task. It shows nothing before the end.
func (r Results) Open(t tasks.Task) (tasks.Report, error) {
	var o resultsOrigin
	if t.Origin != nil {
		if err := json.Unmarshal(t.Origin, &o); err != nil {
			return nil, fmt.Errorf("read origin of %s: %w", t.ID, err)
		}
	}
	if o.Channel == "" {
		return tasks.NoReport{}, nil
	}
	return result{r, t, o.Channel}, nil
}

type result struct {
	Results
	task    tasks.Task
	channel string
}

// Update does nothing.
func (result) Update(agent.Event) {}

// Close posts the ending if it may be posted now.
func (r result) Close(ctx context.Context, e tasks.Ending) error {
	if e.Kind == tasks.Withdrawn {
		return nil
	}
	if r.Board == nil {
		return fmt.Errorf("post result of %s: %w", r.task.Actor, tasks.ErrNotHere)
	}
	may, err := r.May(ctx, r.channel, r.task.Repo)
	if err != nil {
		return err
	}
	if !may {
		r.Log.Warn("result not posted: answers about the repository may not be posted in the channel",
			"run", r.task.ID, "channel", r.channel, "repository", r.task.Repo)
		return nil
	}
	kind, name, _ := strings.Cut(r.task.Actor, ":")
	headline := strings.ToUpper(kind[:1]) + kind[1:] + " " + name
	if sentence := e.Sentence(); sentence != "" {
		headline += ": " + sentence
	}
	if err := r.Board.Tell(ctx, tasks.Notice{
		Task: r.task, Ending: e, Channel: r.channel, Headline: headline, Body: e.Body(),
	}); err != nil {
		return fmt.Errorf("post result of %s: %w", r.task.Actor, err)
	}
	return nil
}
