package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// postLimit bounds one attempt to post a final message, which may have several parts. It is shorter than the outbox's
// lease.
const postLimit = 50 * time.Second

// post posts a task's final message. Until that has succeeded, the ending stays in the outbox and every worker
// retries; the report finds what an earlier attempt has posted. If report is nil, it is opened again.
func (w *Worker) post(ctx context.Context, id string, report tasks.Report) {
	p, ok, err := w.store.Outbox.Take(ctx, id)
	if err != nil {
		w.log.Warn("take outbox", "run", id, "err", err)
		return // the next pass over the outbox posts it
	}
	if ok {
		w.send(ctx, p, report)
	}
}

// posters is how many final messages a worker posts at once, so that a source that hangs does not delay the others.
const posters = 8

// maxPosts is how many attempts a final message gets: about a day's worth at the longest pause.
const maxPosts = 300

// postDue starts posting the final messages that are due, of any worker's tasks. It does not wait for them, so that
// it can start others.
func (w *Worker) postDue(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case w.posters <- struct{}{}:
		default:
			return // the next pass finds the rest
		}
		p, ok, err := w.store.Outbox.Take(ctx, "")
		if err != nil && ctx.Err() == nil {
			w.log.Warn("take outbox", "err", err)
		}
		if err != nil || !ok {
			<-w.posters
			return
		}
		w.posting.Go(func() {
			defer func() { <-w.posters }()
			w.send(ctx, p, nil)
		})
	}
}

func (w *Worker) send(ctx context.Context, p store.Post, report tasks.Report) {
	word, err := w.close(ctx, p.ID, report)
	if err != nil && p.Attempt >= maxPosts {
		w.log.Error("final message dropped: it could not be posted", "run", p.ID, "attempt", p.Attempt, "err", err)
		err = nil
	}
	if err == nil {
		if err = w.store.Outbox.MarkPosted(ctx, p); err != nil {
			w.log.Warn("record posted message", "run", p.ID, "err", err)
			return
		}
		w.meter.Ended(word.task, word.ending, time.Since(word.at))
		return
	}
	at := time.Now().Add(tasks.Backoff(p.Attempt - 1))
	if wait, ok := errors.AsType[*tasks.ErrLater](err); ok {
		at = wait.At
	}
	w.log.Warn("post final message", "run", p.ID, "attempt", p.Attempt, "again", at, "err", err)
	if err := w.store.Outbox.Postpone(ctx, p, at); err != nil {
		w.log.Warn("postpone final message", "run", p.ID, "err", err) // its lease expires
	}
}

// lastWord is what a final message is about: the task, its ending, and when it ended.
type lastWord struct {
	task   tasks.Task
	ending tasks.Ending
	at     time.Time
}

// close posts the task's ending through its report.
func (w *Worker) close(ctx context.Context, id string, report tasks.Report) (word lastWord, _ error) {
	ctx, cancel := context.WithTimeout(withRun(ctx, id), postLimit)
	defer cancel()
	rec, err := w.store.Get(ctx, id)
	if err != nil {
		return word, err
	}
	word.at = rec.Ended
	var source tasks.Source
	if word.task, source, err = w.read(rec); err != nil {
		return word, err
	}
	ending, err := tasks.ReadEnding(rec)
	if err != nil {
		return word, err
	}
	if ending != nil {
		word.ending = *ending
	}
	word.ending.Retried = rec.Retried
	if err := w.proposeDue(ctx, word.task, &word.ending); err != nil {
		return word, err
	}
	if report == nil { // the run could not open its report, or there was no run
		if report, err = source.Open(ctx, word.task); err != nil {
			return word, fmt.Errorf("open report: %w", err)
		}
	}
	return word, report.Close(ctx, word.ending)
}
