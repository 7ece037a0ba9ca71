package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// postLimit bounds one attempt to post a final message, which may have several parts; it ends before the lease does.
const postLimit = 50 * time.Second

// post says a task's final word where it came from. Until that has worked the ending stays in the outbox, and every worker tries
// again; the report finds what an earlier attempt had posted. report may be nil: then it is opened again.
func (w *Worker) post(ctx context.Context, id string, report tasks.Report) {
	p, ok, err := w.store.Outbox.Take(ctx, id)
	if err != nil {
		w.log.Warn("take outbox", "run", id, "err", err)
		return // whoever looks at the outbox next has it
	}
	if ok {
		w.send(ctx, p, report)
	}
}

// posters is how many endings a worker posts at once, so that a source that hangs does not hold up the others.
const posters = 8

// maxPosts is how often an ending is posted before it is given up: with the longest pause between them, for about a day.
const maxPosts = 300

// postDue begins to post what is due, whoever ran it. It does not wait for that: what comes up meanwhile would wait as well.
func (w *Worker) postDue(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case w.posters <- struct{}{}:
		default:
			return // the next look finds the rest
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
		w.log.Error("ending given up: it could not be posted", "run", p.ID, "attempt", p.Attempt, "err", err)
		err = nil
	}
	if err == nil {
		if err = w.store.Outbox.MarkPosted(ctx, p); err != nil {
			w.log.Warn("note posted ending", "run", p.ID, "err", err)
			return
		}
		w.meter.Ended(word.task, word.ending, time.Since(word.at))
		return
	}
	at := time.Now().Add(tasks.Backoff(p.Attempt - 1))
	if wait, ok := errors.AsType[*tasks.ErrLater](err); ok {
		at = wait.At
	}
	w.log.Warn("post ending", "run", p.ID, "attempt", p.Attempt, "again", at, "err", err)
	if err := w.store.Outbox.Postpone(ctx, p, at); err != nil {
		w.log.Warn("put off ending", "run", p.ID, "err", err) // its lease runs out
	}
}

// lastWord is what a final message says: of which task, how it ended, and when.
type lastWord struct {
	task   tasks.Task
	ending tasks.Ending
	at     time.Time
}

// close lets the task's report say its ending.
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
	if report == nil { // the run's own could not be opened, or there was no run
		if report, err = source.Open(ctx, word.task); err != nil {
			return word, fmt.Errorf("open report: %w", err)
		}
	}
	return word, report.Close(ctx, word.ending)
}
