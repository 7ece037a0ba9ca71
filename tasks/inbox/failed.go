package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hibiken/asynq"

	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/tasks"
)

// maxListed bounds what Failed returns of each kind and inbox.
const maxListed = 1000

// Failed returns the events that have failed: those that were given up first, and then those that are tried again.
func (all All) Failed(context.Context) ([]tasks.FailedEvent, error) {
	list := []tasks.FailedEvent{}
	for _, b := range all {
		for _, read := range []func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error){
			b.inspector.ListArchivedTasks, b.inspector.ListRetryTasks,
		} {
			found, err := read(b.cfg.Queue, asynq.PageSize(maxListed))
			if errors.Is(err, asynq.ErrQueueNotFound) { // asynq creates it with its first task
				b.renew()
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("list failed events: %w", err)
			}
			for _, t := range found {
				e := tasks.FailedEvent{
					ID: t.ID, Source: t.Headers[sourceHeader], Kind: t.Headers[kindHeader], Attempts: t.Retried,
					Failed: t.LastFailedAt, Problem: t.LastErr, Next: t.NextProcessAt,
				}
				if t.State == asynq.TaskStateArchived {
					e.Attempts++ // the last one has no retry
				}
				list = append(list, e)
			}
		}
	}
	return list, nil
}

// Replay tries a failed event again, now. It does nothing to one that is being tried, and returns [tasks.ErrNotFound]
// for any other.
func (all All) Replay(_ context.Context, id string) error {
	for _, b := range all {
		info, err := b.inspector.GetTaskInfo(b.cfg.Queue, id)
		switch {
		case errors.Is(err, asynq.ErrTaskNotFound) || errors.Is(err, asynq.ErrQueueNotFound):
			continue
		case err != nil:
		case info.State == asynq.TaskStatePending || info.State == asynq.TaskStateActive:
			return nil
		case info.State == asynq.TaskStateRetry || info.State == asynq.TaskStateArchived:
			err = b.inspector.RunTask(b.cfg.Queue, id)
		default:
			continue
		}
		if err != nil {
			return fmt.Errorf("replay event %s: %w", id, err)
		}
		return nil
	}
	return tasks.ErrNotFound
}

// troubled is after how many attempts, about a minute, an event counts as one that fails.
const troubled = 5

// Diagnose reports events that were given up, or else events that have failed for some time.
func (all All) Diagnose(ctx context.Context) []doctor.Finding {
	list, err := all.Failed(ctx)
	if err != nil {
		return []doctor.Finding{{What: "inbox", Why: err.Error()}}
	}
	return diagnose(list)
}

// diagnose says what events that have failed mean.
func diagnose(list []tasks.FailedEvent) []doctor.Finding {
	f := doctor.Finding{What: "inbox"}
	dead := slices.DeleteFunc(slices.Clone(list), func(e tasks.FailedEvent) bool { return !e.Next.IsZero() })
	retried := slices.IndexFunc(list, func(e tasks.FailedEvent) bool { return e.Attempts >= troubled })
	if len(dead) > 0 {
		f.Why = fmt.Sprintf("events that were given up: %d, such as %s", len(dead), describe(dead[0]))
		f.Remedy = "remove the cause, list them with `enqueue inbox`, and try them again with `enqueue inbox replay ID`"
	} else if retried >= 0 {
		f.Why = "events fail, such as " + describe(list[retried])
		f.Remedy = "remove the cause: errand tries again for a day, and `enqueue inbox` lists the events"
	} else {
		f.What = "the inbox has no event that has failed"
	}
	return []doctor.Finding{f}
}

func describe(e tasks.FailedEvent) string { return e.Source + " " + e.Kind + ": " + e.Problem }
