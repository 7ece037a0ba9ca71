package worker

import (
	"context"
	"fmt"
	"log/slog"
	"math/bits"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// waitsApart is the minimum time between two notices of why a task waits, because positions change often and Slack
// limits edits.
const waitsApart = 15 * time.Second

// fullKey identifies a notice about a full scope. Further back than third, a new position is worth a notice only when
// it has halved.
func fullKey(b store.Blocked) string {
	place := b.Place
	if place > 3 {
		place = 1 << (bits.Len(uint(place)) - 1)
	}
	return fmt.Sprintf("%s %d", b.Scope, place)
}

// waitNotes holds the notices of why tasks wait. It is safe for concurrent use.
type waitNotes struct {
	store *store.Store
	tasks *taskReader
	log   *slog.Logger

	apart   time.Duration  // waitsApart
	tokens  chan struct{}  // one for each notice that is being posted
	posting sync.WaitGroup // counts them

	mu    sync.Mutex
	later map[string]waitNote // by task: notices to post later
}

// waitNote is a notice of why a task waits. key identifies the reason.
type waitNote struct {
	id       string
	delivery int
	key, why string
	asks     bool      // the task is delivered again soon, and will then report its reason again
	at       time.Time // when to post it; zero: at once
}

// maxWaitNotes is how many notices are kept for later. Others are dropped, because the task's status has the reason.
const maxWaitNotes = 1000

// put keeps a notice for later, unless there is a newer one or there are too many.
func (n *waitNotes) put(t waitNote) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, newer := n.later[t.id]; !t.asks && !newer && len(n.later) < maxWaitNotes {
		n.later[t.id] = t
	}
}

// drop drops the notice of a task.
func (n *waitNotes) drop(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.later, id)
}

// due removes and returns at most that many notices that are due.
func (n *waitNotes) due(most int) (list []waitNote) {
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

// post reports why a task waits, to the task's followers and in the place where it was requested, unless that was
// the last reason reported. It does not block. If it is too soon after another notice, or too many are under way, it
// is posted later, if it is still true.
func (n *waitNotes) post(t waitNote) {
	n.drop(t.id)
	n.postNow(t)
}

// postLater posts the notices that are due.
func (n *waitNotes) postLater(context.Context) {
	for _, t := range n.due(posters) {
		n.postNow(t)
	}
}

// postNow posts a notice in the background, or keeps it for later.
func (n *waitNotes) postNow(t waitNote) {
	select {
	case n.tokens <- struct{}{}:
	default:
		t.at = time.Now()
		n.put(t)
		return
	}
	n.posting.Go(func() {
		defer func() { <-n.tokens }()
		ctx, cancel := context.WithTimeout(withRun(context.Background(), t.id), sayLimit)
		defer cancel()
		if !t.at.IsZero() {
			if rec, err := n.store.Get(ctx, t.id); err != nil || rec.Why != t.why || rec.Blocked != (store.Blocked{}) {
				return // it no longer waits, or waits for another reason
			}
		}
		text := "Waiting: " + t.why
		event := agent.Event{Kind: agent.Notice, Tool: tasks.Waits, Text: text, Time: time.Now()}
		fresh, early, err := n.store.Explain(ctx, t.id, store.Explanation{Delivery: t.delivery, Key: t.key, Event: format.JSON(event), Interval: n.apart})
		switch {
		case err == nil && fresh:
			err = n.show(ctx, t.id, text)
		case early > 0:
			t.at = time.Now().Add(early)
			n.put(t)
		}
		if err != nil {
			n.log.Warn("post why a task waits", "run", t.id, "err", err)
		}
	})
}

func (n *waitNotes) show(ctx context.Context, id, text string) error {
	rec, err := n.store.Get(ctx, id)
	if err != nil {
		return err
	}
	t, source, err := n.tasks.read(rec)
	if to, ok := source.(tasks.Waiter); err == nil && ok && rec.State == store.Waiting {
		err = to.Waits(ctx, t, text)
	}
	return err
}

// maxNotified is how many threads one pass informs, so that a long queue does not use up a source's rate limit.
const maxNotified = 20

// outageNotes tells threads that no worker can run their tasks. Like recovery, only a leader does it. Only one goroutine
// uses it.
type outageNotes struct {
	store   *store.Store
	tasks   *taskReader
	health  *health
	leader  *store.Leader
	observe time.Duration // Timing.Observe
	log     *slog.Logger

	after    string            // the walk through live tasks continues after this one; empty: at the first
	heads    map[string]string // by thread: the first of its tasks in this walk
	notified map[string]bool   // tasks that are done; FirstWhileWaiting knows those of other workers
}

// notifyDue tells the threads of waiting tasks, once, that no worker can run them.
func (o *outageNotes) notifyDue(ctx context.Context) {
	if o.health.ready() || !o.health.since(time.Time{}) {
		return
	}
	seen, err := o.store.Workers.List(ctx)
	why := tasks.WhyNoWorker(seen)
	if err != nil || why == "" || len(seen) == 0 { // this worker's heartbeat is not visible yet
		return
	}
	if term, err := o.leader.Lead(ctx); err != nil || term == "" {
		return // another worker does it, or Redis is unreachable, which the reconciler logs
	}
	for sent, looked := 0, 0; sent < maxNotified && looked < lookMost && ctx.Err() == nil; looked += lookStep {
		live, next, err := o.store.LiveAfter(ctx, o.after, lookStep)
		if err != nil {
			return
		}
		if o.after == "" {
			o.begin()
		}
		o.after = next
		for _, rec := range live { // the oldest first
			if !o.due(rec.Record) || time.Since(rec.Due()) < o.observe {
				continue
			}
			said, over := o.notify(ctx, rec.ID, why)
			if o.notified[rec.ID] = over; said {
				sent++
			}
			if sent >= maxNotified {
				o.after = rec.ID
				return
			}
		}
		if next == "" {
			return // the next pass starts from the beginning
		}
	}
}

// begin starts a new walk. It forgets tasks that are no longer the first of their thread.
func (o *outageNotes) begin() {
	still := map[string]bool{}
	for _, id := range o.heads {
		if o.notified[id] {
			still[id] = true
		}
	}
	o.heads, o.notified = map[string]string{}, still
}

// due reports whether a task is the first of its thread, waits, and has not been handled.
func (o *outageNotes) due(rec store.Record) bool {
	if rec.Unreadable != "" {
		return false
	}
	if first, ok := o.heads[rec.Thread]; ok && first != rec.ID {
		return false
	}
	o.heads[rec.Thread] = rec.ID
	return rec.State == store.Waiting && !o.notified[rec.ID]
}

// notify informs the thread of one task, unless that was done before or is impossible. over means that it need
// not be tried again.
func (o *outageNotes) notify(ctx context.Context, id, why string) (said, over bool) {
	ctx, cancel := context.WithTimeout(ctx, sayLimit)
	defer cancel()
	rec, err := o.store.Get(ctx, id)
	if err != nil {
		return false, false // it is gone, or Redis is unreachable
	}
	t, s, err := o.tasks.read(rec)
	if err != nil {
		return false, true // a worker that can read it will do it
	}
	to, ok := talker(s, t)
	if !ok {
		return false, true
	}
	if first, err := o.store.Questions.FirstWhileWaiting(ctx, id, "unable"); err != nil || !first {
		return false, err == nil
	}
	text := upperFirst(why) + ". This waits and starts by itself when that is fixed. To stop it, cancel it in the console or with " +
		"`enqueue cancel " + id + "`."
	if err := to.Say(ctx, t, text); err != nil {
		o.log.Warn("say that the task waits", "run", id, "thread", t.Thread, "err", err)
	}
	return true, true
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
