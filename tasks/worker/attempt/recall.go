package attempt

import (
	"context"
	"errors"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/worker/logline"
)

// Redis may come back without its last second (appendfsync everysec, a replica that took over) or from a backup, and
// may then have lost a task's ending, so that the task looks like one whose worker died. The thread still has the final
// message. So recall asks the source for it before a task is run again.

// recallLimit and recallTries bound the search for an earlier final message.
const (
	recallLimit = 30 * time.Second
	recallTries = 3
	recallPause = 500 * time.Millisecond
)

// overError is the cause of a task that does not run again: its final message is posted already, or it has crashed too
// many workers.
type overError struct{ ending tasks.Ending }

func (*overError) Error() string { return "the task is over" }

// recall looks in the thread for the final message of a task that has, or may have, started before. If the source is
// rate limited, the task waits, because otherwise the work would be done twice. After any other error the task runs,
// and the report looks again before it posts.
func (p *Processor) recall(r *run, j job) error {
	rec := r.Claim.Record()
	final := j.source.Capabilities().Final
	if final == nil || rec.Attempt <= 1 && rec.Crashes == 0 && !rec.Doubt {
		return nil
	}
	e, err := findFinal(r.Ctx, final, j.task, rec.Retried)
	if wait, ok := errors.AsType[*tasks.ErrLater](err); ok {
		return wait
	}
	if err != nil && r.Ctx.Err() == nil {
		p.Log.Warn("look for an earlier final message", "run", j.task.ID, "thread", j.task.Thread, "err", err)
	}
	if e == nil {
		return nil
	}
	p.Log.Warn("task was answered before, and Redis has forgotten it", "run", j.task.ID, "thread",
		j.task.Thread, "ended", e.At)
	e.Found = true
	if e.Kind == tasks.Answered {
		e.Reason = "This was answered before, and the record was lost. The answer is in the thread."
	} else {
		e.Reason = "This ended before, and the record was lost. The thread says how."
	}
	return &overError{ending: *e}
}

// findFinal looks for a final message, a few times unless the source says when to ask again.
func findFinal(
	ctx context.Context, final func(context.Context, tasks.Task, time.Time) (*tasks.Ending, error), t tasks.Task,
	since time.Time,
) (*tasks.Ending, error) {
	ctx, cancel := context.WithTimeout(ctx, recallLimit)
	defer cancel()
	for try := 1; ; try++ {
		e, err := final(ctx, t, since)
		if err == nil {
			return e, nil
		}
		_, wait := errors.AsType[*tasks.ErrLater](err)
		if wait || try == recallTries || ctx.Err() != nil {
			return nil, err
		}
		select {
		case <-time.After(time.Duration(try) * recallPause):
		case <-ctx.Done():
		}
	}
}

// endCovered ends the waiting tasks that a found message has answered as well.
func (p *Processor) endCovered(r *run, e tasks.Ending) {
	for _, id := range e.Covers {
		own := tasks.Ending{Kind: e.Kind, At: e.At, Found: true, Reason: tasks.AnsweredWith(r.Claim.ID())}
		_, err := record.EndWaiting(r.Detached, p.Store, id, own)
		logline.Warn(p.Log, err, "end task", "run", id)
	}
}
