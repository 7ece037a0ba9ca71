package worker

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

const (
	// messages that a worker posts at once, so that a source that hangs does not delay the others
	posters        = 8
	maxPosts       = 300            // attempts to post a final message, at least: about a day's worth
	postTime       = 24 * time.Hour // for them, at least: workers that cannot post the message use up attempts
	elsewherePause = 5 * time.Second
	postLimit      = 50 * time.Second // for one attempt, which may post several parts; shorter than the outbox's lease
	noticeLimit    = 15 * time.Second // for posting one notice
	// between two notices about a task: positions change often, and Slack limits edits
	noticesApart = 15 * time.Second
	maxNotices   = 1000 // kept for later; others are dropped, because the task's status has the reason
)

// outboxPoster posts the final messages of this and other workers' tasks. It is safe for concurrent use.
type outboxPoster struct {
	*Config

	tasks     *taskReader
	publisher *publisher

	tokens  chan struct{}  // holds a token for each final message that is being posted in the background
	posting sync.WaitGroup // counts them
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

// inBackground calls post in a goroutine, unless too many messages are being posted already. It reports whether it
// does.
func (o *outboxPoster) inBackground(post func()) bool {
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

// postDue starts posting the final messages that are due, of any worker's tasks from this worker's sources. It does not
// wait for them, so that it can start others.
func (o *outboxPoster) postDue(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case o.tokens <- struct{}{}:
		default:
			return // the next pass finds the rest
		}
		p, ok, err := o.Store.Outbox.Take(ctx, "", o.sources()...)
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

// old reports whether a final message that cannot be posted is given up. Its task ended at that time.
func old(p store.Post, ended time.Time) bool {
	return p.Attempt >= maxPosts && time.Since(ended) >= postTime
}

func (o *outboxPoster) send(ctx context.Context, p store.Post, report tasks.Report) {
	m, err := o.postEnding(ctx, p, report)
	if errors.Is(err, store.ErrStale) {
		return // the task was retried
	}
	problem := problemOf(err)
	if errors.Is(err, tasks.ErrNotHere) && !old(p, m.at) {
		err = o.Store.Outbox.Postpone(ctx, p, store.Delay{At: time.Now().Add(elsewherePause)})
		o.warn(err, "leave final message to another worker", "run", p.ID)
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
	o.warn(o.Store.Events.Archive(ctx, p.ID), "archive events", "run", p.ID)
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
func (o *outboxPoster) postpone(ctx context.Context, p store.Post, m finalMessage, problem *tasks.UnpostedError) {
	delay := store.Delay{At: time.Now().Add(tasks.Backoff(p.Attempt - 1)), Why: problem.Why}
	if wait, ok := errors.AsType[*tasks.ErrLater](problem); ok {
		delay.At = wait.At
	}
	if problem.Shown && o.announce(ctx, m) == nil {
		delay.Shown, delay.Why = true, ""
		o.measure(m)
	}
	o.Log.Warn("post final message", "run", p.ID, "attempt", p.Attempt, "again", delay.At, "posted", delay.Shown,
		"err", problem)
	o.warn(o.Store.Outbox.Postpone(ctx, p, delay), "postpone final message", "run", p.ID) // its lease expires
}

// announce notes the ending of a task and of those that its run absorbed, unless an earlier attempt did.
func (o *outboxPoster) announce(ctx context.Context, m finalMessage) error {
	if o.Ended == nil || m.task.ID == "" || m.shown {
		return nil
	}
	return o.note(ctx, m)
}

// measure counts the ending of a task, unless an earlier attempt did.
func (o *outboxPoster) measure(m finalMessage) {
	if !m.shown {
		o.Meter.Ended(m.task, m.ending, time.Since(m.at))
	}
}

// note notes the ending of a task and of those that its run absorbed, which end with it.
func (o *outboxPoster) note(ctx context.Context, m finalMessage) error {
	if err := o.Ended(ctx, m.task, m.ending.Kind, m.at); err != nil {
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
		t, err := tasks.ReadTask(rec)
		if err != nil {
			o.Log.Warn("note the ending of an absorbed task", "run", id, "err", err)
			continue
		}
		if err := o.Ended(ctx, t, m.ending.Kind, rec.Ended); err != nil {
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
func (o *outboxPoster) postEnding(ctx context.Context, p store.Post, report tasks.Report) (m finalMessage, _ error) {
	ctx, cancel := context.WithTimeout(withRun(ctx, p.ID), postLimit)
	defer cancel()
	rec, err := o.Store.Get(ctx, p.ID)
	if err != nil {
		return m, err
	}
	if !p.Of(rec) {
		return m, store.ErrStale
	}
	m.at, m.shown = rec.Ended, rec.Shown
	task, source, absent := o.tasks.read(rec)
	if absent != nil && !errors.Is(absent, tasks.ErrNotHere) {
		return m, absent
	}
	m.task = task
	ending, err := tasks.ReadEnding(rec)
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

// waitNotices shows why tasks wait: as notices in their status, to their followers and in the places where they were
// requested, and as messages in their threads. It is safe for concurrent use.
type waitNotices struct {
	*Config

	tasks *taskReader

	apart   time.Duration  // noticesApart
	tokens  chan struct{}  // one for each notice that is being posted
	posting sync.WaitGroup // counts them

	mu    sync.Mutex
	later map[string]waitNotice // by task: notices to post later
}

// waitNotice is a notice of why a task waits.
type waitNotice struct {
	id       string
	delivery int
	key      string    // identifies the reason
	why      string    // the reason in the task's record
	repeats  bool      // the leader sees the reason again, and reports it
	said     bool      // a message in the thread has the reason: only the status message is missing
	at       time.Time // when to post it; at once if zero
}

// post posts a notice, unless it has the key of the last one that was posted. It does not block. If an update is too
// soon after another notice, or too many are under way, it is posted later, if it is still true.
func (n *waitNotices) post(t waitNotice) {
	n.mu.Lock()
	delete(n.later, t.id)
	n.mu.Unlock()
	n.postNow(t)
}

// postLater posts the notices that are due.
func (n *waitNotices) postLater(context.Context) {
	for _, t := range n.due(posters) {
		n.postNow(t)
	}
}

// postNow posts a notice in the background, or keeps it for later.
func (n *waitNotices) postNow(t waitNotice) {
	select {
	case n.tokens <- struct{}{}:
	default:
		n.keep(t, 0)
		return
	}
	n.posting.Go(func() {
		defer func() { <-n.tokens }()
		ctx, cancel := context.WithTimeout(withRun(context.Background(), t.id), noticeLimit)
		defer cancel()
		if !t.at.IsZero() {
			if rec, err := n.Store.Get(ctx, t.id); err != nil || rec.Why != t.why || rec.Blocked != (store.Blocked{}) {
				return // it no longer waits, or waits for another reason
			}
		}
		n.warn(n.explain(ctx, t), "post why a task waits", "run", t.id)
	})
}

func (n *waitNotices) explain(ctx context.Context, t waitNotice) error {
	if t.said {
		return n.show(ctx, t.id)
	}
	event := agent.Event{Kind: agent.Notice, Tool: tasks.Waits, Text: "Waiting: " + t.why, Time: time.Now()}
	fresh, early, err := n.Store.Explain(ctx, t.id, store.Explanation{
		Delivery: t.delivery, Key: t.key, Event: format.JSON(event), Interval: n.apart,
	})
	switch {
	case err == nil && fresh:
		return n.show(ctx, t.id)
	case early > 0:
		n.keep(t, early)
	}
	return err
}

// keep keeps a notice for later, unless there is a newer one or there are too many.
func (n *waitNotices) keep(t waitNotice, d time.Duration) {
	t.at = time.Now().Add(d)
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, newer := n.later[t.id]; !t.repeats && !newer && len(n.later) < maxNotices {
		n.later[t.id] = t
	}
}

// due removes and returns at most that many notices that are due.
func (n *waitNotices) due(most int) (list []waitNotice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, t := range n.later {
		if len(list) < most && !time.Now().Before(t.at) {
			list = append(list, t)
			delete(n.later, id)
		}
	}
	return list
}

// show shows why a task waits in the place where it was requested, as far as its source can.
func (n *waitNotices) show(ctx context.Context, id string) error {
	rec, err := n.Store.Get(ctx, id)
	if err != nil || rec.State != store.Waiting {
		return err
	}
	places, err := n.Store.Places(ctx, []store.Record{rec})
	if err != nil {
		return err
	}
	if rec.Blocked != (store.Blocked{}) {
		rec.Blocked.Place = places[0]
	}
	t, source, err := n.tasks.read(rec)
	if to, ok := source.(tasks.Waiter); ok && err == nil {
		return to.Waits(ctx, t, tasks.WaitingHeadline(rec, time.Now()))
	}
	return err
}

// sayOnce posts a message about a task to its thread, if its source can speak and first returns true. over means that
// it need not be tried again. Errors are logged: the task's status says the same.
func (n *waitNotices) sayOnce(
	ctx context.Context, id, text string, first func(context.Context) (bool, error),
) (said, over bool) {
	ctx, cancel := context.WithTimeout(withRun(ctx, id), noticeLimit)
	defer cancel()
	rec, err := n.Store.Get(ctx, id)
	if err != nil {
		return false, false // it is gone, or Redis is unreachable
	}
	t, source, err := n.tasks.read(rec)
	if err != nil {
		return false, true // a worker that can read it does it
	}
	to, ok := talker(source, t)
	if !ok {
		return false, true
	}
	if is, err := first(ctx); err != nil || !is {
		return false, err == nil
	}
	n.warn(to.Say(ctx, t, text), "say why a task waits", "run", id)
	return true, true
}

// postPlace posts a notice of where a refused task waits, unless explained is the key of that place.
func (n *waitNotices) postPlace(t waitNotice, b store.Blocked, explained string) {
	if t.key = placeKey(b); t.key != explained {
		t.why, t.repeats = tasks.BlockedBy(b), true
		n.post(t)
	}
}

// placeKey identifies a notice about a full scope or, without a scope, a busy thread. Further back than third, a new
// position is worth a notice only when it has halved.
func placeKey(b store.Blocked) string {
	place := b.Place
	if place > 3 {
		place = 1 << (bits.Len(uint(place)) - 1)
	}
	return fmt.Sprintf("%s %d", b.Scope, place)
}

// parked says why and until when a task waits, and how to cancel it.
func parked(id string, wait store.Wait) string {
	return fmt.Sprintf("Paused until %s: %s. The work so far is kept, and the task continues by itself. %s",
		moment(wait.At, time.Now()), wait.Why, howToCancel(id))
}

// outlasting says that a task waits for the model, which may take several tries.
func outlasting(id string, wait store.Wait) string {
	return fmt.Sprintf("Paused: %s. The work so far is kept, and the task continues by itself as soon as the model "+
		"answers again, for up to %d hours. %s", wait.Why, int(horizon.Hours()), howToCancel(id))
}

func howToCancel(id string) string {
	return "To stop it, cancel it in the console or with `enqueue cancel " + id + "`."
}
