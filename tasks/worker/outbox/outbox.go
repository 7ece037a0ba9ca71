// Package outbox posts final messages: those of endings that this worker has stored, and those that a crash or a
// failure has left. An ending stays in the store's outbox until its message is posted, and every worker retries it.
package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/tasks/worker/sources"
)

const (
	// posters is how many messages a worker posts at once, so that a source that hangs does not delay the others.
	posters = 8
	// A final message is given up after at least maxPosts attempts, which are about a day's worth, and after postTime:
	// workers that cannot post the message use up attempts.
	maxPosts = 300
	postTime = 24 * time.Hour
	// elsewherePause is how long a message waits for a worker that is set up for its source.
	elsewherePause = 5 * time.Second
	// postLimit bounds one attempt, which may post several parts. It is shorter than the outbox's lease.
	postLimit = 50 * time.Second
)

// Config configures a [Poster].
type Config struct {
	Store   *store.Store
	Sources *sources.Set
	// PullRequests opens what is due when an ending is posted.
	PullRequests PullRequests
	// Ended notes that a task has ended, after its final message was posted; it is called again if it fails. nil:
	// nothing.
	Ended func(ctx context.Context, t tasks.Task, at time.Time) error
	Meter Meter
	Log   *slog.Logger
}

// PullRequests opens the pull requests of published work.
type PullRequests interface {
	// OpenDue opens those that an ending still lacks, and notes them in it. After an error the message waits.
	OpenDue(ctx context.Context, t tasks.Task, e *tasks.Ending) error
}

// Meter receives what is posted. It is called from many goroutines and must not block.
type Meter interface {
	// Ended reports a task whose final message was posted, and how long after the ending. It is called once per
	// ending in the whole fleet.
	Ended(t tasks.Task, e tasks.Ending, lag time.Duration)
}

// Poster posts the final messages of this and other workers' tasks. It is safe for concurrent use.
type Poster struct {
	Config

	tokens  chan struct{}  // holds a token for each final message that is being posted in the background
	posting sync.WaitGroup // counts them
}

// New returns a poster.
func New(c Config) *Poster { return &Poster{Config: c, tokens: make(chan struct{}, posters)} }

// Wait waits until nothing is being posted in the background. No more may be begun meanwhile.
func (o *Poster) Wait() { o.posting.Wait() }

// Post posts a task's final message. Until that has succeeded, the ending stays in the outbox and every worker
// retries; the report finds what an earlier attempt has posted. If report is nil, it is opened again.
func (o *Poster) Post(ctx context.Context, id string, report tasks.Report) {
	p, ok, err := o.Store.Outbox.Take(ctx, id)
	if err != nil {
		o.Log.Warn("take outbox", "run", id, "err", err)
		return // the next pass over the outbox posts it
	}
	if ok {
		o.Send(ctx, p, report)
	}
}

// InBackground calls post in a goroutine, unless too many messages are being posted already. It reports whether it
// does.
func (o *Poster) InBackground(post func()) bool {
	select {
	case o.tokens <- struct{}{}:
	default:
		return false
	}
	o.posting.Go(func() {
		defer func() { <-o.tokens }()
		post()
	})
	return true
}

// PostDue starts posting the final messages that are due, of any worker's tasks from this worker's sources. It does not
// wait for them, so that it can start others.
func (o *Poster) PostDue(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case o.tokens <- struct{}{}:
		default:
			return // the next pass finds the rest
		}
		p, ok, err := o.Store.Outbox.Take(ctx, "", o.Sources.Names()...)
		if err != nil && ctx.Err() == nil {
			o.Log.Warn("take outbox", "err", err)
		}
		if err != nil || !ok {
			<-o.tokens
			return
		}
		o.posting.Go(func() {
			defer func() { <-o.tokens }()
			o.Send(ctx, p, nil)
		})
	}
}

// old reports whether a final message that cannot be posted is given up. Its task ended at that time.
func old(p store.Post, ended time.Time) bool {
	return p.Attempt >= maxPosts && time.Since(ended) >= postTime
}

// Send posts a final message that was taken from the outbox, and records what has become of it. If report is nil, it is
// opened again.
func (o *Poster) Send(ctx context.Context, p store.Post, report tasks.Report) {
	m, err := o.postEnding(ctx, p, report)
	if errors.Is(err, store.ErrStale) {
		return // the task was retried
	}
	problem := problemOf(err)
	if errors.Is(err, tasks.ErrNotHere) && !old(p, m.at) {
		err = o.Store.Outbox.Postpone(ctx, p, store.Delay{At: time.Now().Add(elsewherePause)})
		logline.Warn(o.Log, err, "leave final message to another worker", "run", p.ID)
		return
	}
	if problem != nil && !problem.Final && !old(p, m.at) {
		o.postpone(ctx, p, m, problem)
		return
	}
	if problem != nil {
		o.Log.Error("final message dropped: it could not be posted", "run", p.ID, "attempt", p.Attempt, "err", err)
	}
	if err := o.announce(ctx, m); err != nil {
		o.postpone(ctx, p, m, problemOf(err))
		return
	}
	if problem != nil && !problem.Shown && !m.shown {
		err = o.Store.Outbox.GiveUp(ctx, p, problem.Why)
	} else {
		err = o.Store.Outbox.MarkPosted(ctx, p)
	}
	if err != nil {
		o.Log.Warn("record posted message", "run", p.ID, "err", err)
		return
	}
	o.measure(m)
	logline.Warn(o.Log, o.Store.Events.Archive(ctx, p.ID), "archive events", "run", p.ID)
}

// problemOf returns what an attempt left to do, or nil.
func problemOf(err error) *tasks.UnpostedError {
	if err == nil {
		return nil
	}
	if problem, ok := errors.AsType[*tasks.UnpostedError](err); ok {
		return problem
	}
	why := "the log of the worker says why"
	if later, ok := errors.AsType[*tasks.ErrLater](err); ok {
		why = later.Why
	}
	return &tasks.UnpostedError{Why: why, Err: err}
}

// postpone makes a final message due again. If people have it, and only its status is left, its task counts as posted.
func (o *Poster) postpone(ctx context.Context, p store.Post, m finalMessage, problem *tasks.UnpostedError) {
	delay := store.Delay{At: time.Now().Add(queue.Backoff(p.Attempt - 1)), Why: problem.Why}
	if wait, ok := errors.AsType[*tasks.ErrLater](problem); ok {
		delay.At = wait.At
	}
	if problem.Shown && o.announce(ctx, m) == nil {
		delay.Shown, delay.Why = true, ""
		o.measure(m)
	}
	o.Log.Warn("post final message", "run", p.ID, "attempt", p.Attempt, "again", delay.At, "posted", delay.Shown,
		"err", problem)
	err := o.Store.Outbox.Postpone(ctx, p, delay) // after an error its lease expires
	logline.Warn(o.Log, err, "postpone final message", "run", p.ID)
}

// measure counts the ending of a task, unless an earlier attempt did.
func (o *Poster) measure(m finalMessage) {
	if !m.shown {
		o.Meter.Ended(m.task, m.ending, time.Since(m.at))
	}
}

// announce notes the ending of a task and of those that its run absorbed, which end with it, unless an earlier attempt
// did.
func (o *Poster) announce(ctx context.Context, m finalMessage) error {
	if o.Ended == nil || m.task.ID == "" || m.shown {
		return nil
	}
	if err := o.Ended(ctx, m.task, m.at); err != nil {
		return err
	}
	for _, id := range m.ending.Covers {
		rec, err := o.Store.Get(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			continue // it is no longer kept
		}
		if err != nil {
			return err
		}
		if rec.Into != m.task.ID {
			continue // it was retried
		}
		t, err := record.Task(rec)
		if err != nil {
			o.Log.Warn("note the ending of an absorbed task", "run", id, "err", err)
			continue
		}
		if err := o.Ended(ctx, t, rec.Ended); err != nil {
			return err
		}
	}
	return nil
}

// finalMessage is a task with its ending, and when it ended.
type finalMessage struct {
	task   tasks.Task
	ending tasks.Ending
	at     time.Time
	shown  bool // an earlier attempt posted it; only the status is left
}

// postEnding posts the task's ending through its report. It returns [store.ErrStale] if the task was retried since the
// lease.
func (o *Poster) postEnding(ctx context.Context, p store.Post, report tasks.Report) (m finalMessage, _ error) {
	ctx, cancel := context.WithTimeout(logline.WithRun(ctx, p.ID), postLimit)
	defer cancel()
	rec, err := o.Store.Get(ctx, p.ID)
	if err != nil {
		return m, err
	}
	if !p.Of(rec) {
		return m, store.ErrStale
	}
	m.at, m.shown = rec.Ended, rec.Shown
	task, source, absent := o.Sources.Read(rec)
	if absent != nil && !errors.Is(absent, tasks.ErrNotHere) {
		return m, absent
	}
	m.task = task
	ending, err := record.Ending(rec)
	if err != nil {
		return m, err
	}
	if ending != nil {
		m.ending = *ending
	}
	if absent != nil {
		return m, absent
	}
	m.ending.Retried = rec.Retried
	if err := o.openDue(ctx, m.task, &m.ending); err != nil {
		return m, err
	}
	if report == nil { // the run could not open its report, or there was no run
		if report, err = source.Open(ctx, m.task); err != nil {
			return m, fmt.Errorf("open report: %w", err)
		}
	}
	return m, report.Close(ctx, m.ending)
}

// openDue opens the pull requests that are due, and leaves half of the time for posting the answer.
func (o *Poster) openDue(ctx context.Context, t tasks.Task, e *tasks.Ending) error {
	ctx, cancel := context.WithTimeout(ctx, postLimit/2)
	defer cancel()
	return o.PullRequests.OpenDue(ctx, t, e)
}
