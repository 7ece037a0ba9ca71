package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// postLimit bounds one attempt to post a final message, which may have several parts. It is shorter than the outbox's
// lease.
const postLimit = 50 * time.Second

// outboxPoster posts the final messages of this and other workers' tasks. It is safe for concurrent use.
type outboxPoster struct {
	*Config

	tasks     *taskReader
	publisher *publisher

	tokens  chan struct{}  // holds a token for each final message that is being posted
	posting sync.WaitGroup // counts those that postDue started
}

// post posts a task's final message. Until that has succeeded, the ending stays in the outbox and every worker
// retries; the report finds what an earlier attempt has posted. If report is nil, it is opened again.
func (o *outboxPoster) post(ctx context.Context, id string, report tasks.Report) {
	p, ok, err := o.Store.Outbox.Take(ctx, id)
	if err != nil {
		o.Log.Warn("take outbox", "run", id, "err", err)
		return // the next pass over the outbox posts it
	}
	if ok {
		o.send(ctx, p, report)
	}
}

// posters is how many final messages a worker posts at once, so that a source that hangs does not delay the others.
const posters = 8

// maxPosts is how many attempts a final message gets: about a day's worth at the longest pause.
const maxPosts = 300

// postDue starts posting the final messages that are due, of any worker's tasks. It does not wait for them, so that
// it can start others.
func (o *outboxPoster) postDue(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case o.tokens <- struct{}{}:
		default:
			return // the next pass finds the rest
		}
		p, ok, err := o.Store.Outbox.Take(ctx, "")
		if err != nil && ctx.Err() == nil {
			o.Log.Warn("take outbox", "err", err)
		}
		if err != nil || !ok {
			<-o.tokens
			return
		}
		o.posting.Go(func() {
			defer func() { <-o.tokens }()
			o.send(ctx, p, nil)
		})
	}
}

func (o *outboxPoster) send(ctx context.Context, p store.Post, report tasks.Report) {
	m, err := o.postEnding(ctx, p.ID, report)
	if err != nil && p.Attempt >= maxPosts {
		o.Log.Error("final message dropped: it could not be posted", "run", p.ID, "attempt", p.Attempt, "err", err)
		err = nil
	}
	if err == nil {
		if err = o.Store.Outbox.MarkPosted(ctx, p); err != nil {
			o.Log.Warn("record posted message", "run", p.ID, "err", err)
			return
		}
		o.Meter.Ended(m.task, m.ending, time.Since(m.at))
		return
	}
	at := time.Now().Add(tasks.Backoff(p.Attempt - 1))
	if wait, ok := errors.AsType[*tasks.ErrLater](err); ok {
		at = wait.At
	}
	o.Log.Warn("post final message", "run", p.ID, "attempt", p.Attempt, "again", at, "err", err)
	if err := o.Store.Outbox.Postpone(ctx, p, at); err != nil {
		o.Log.Warn("postpone final message", "run", p.ID, "err", err) // its lease expires
	}
}

// finalMessage is a task with its ending, and when it ended.
type finalMessage struct {
	task   tasks.Task
	ending tasks.Ending
	at     time.Time
}

// postEnding posts the task's ending through its report.
func (o *outboxPoster) postEnding(ctx context.Context, id string, report tasks.Report) (m finalMessage, _ error) {
	ctx, cancel := context.WithTimeout(withRun(ctx, id), postLimit)
	defer cancel()
	rec, err := o.Store.Get(ctx, id)
	if err != nil {
		return m, err
	}
	m.at = rec.Ended
	var source tasks.Source
	if m.task, source, err = o.tasks.read(rec); err != nil {
		return m, err
	}
	ending, err := tasks.ReadEnding(rec)
	if err != nil {
		return m, err
	}
	if ending != nil {
		m.ending = *ending
	}
	m.ending.Retried = rec.Retried
	if err := o.publisher.proposeDue(ctx, m.task, &m.ending); err != nil {
		return m, err
	}
	if report == nil { // the run could not open its report, or there was no run
		if report, err = source.Open(ctx, m.task); err != nil {
			return m, fmt.Errorf("open report: %w", err)
		}
	}
	return m, report.Close(ctx, m.ending)
}
