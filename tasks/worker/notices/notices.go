// Package notices tells people why their tasks wait: in the tasks' status messages, where they were requested, and as
// messages in their threads.
package notices

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"sync"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/tasks/worker/sources"
)

const (
	posters = 8                // notices that a worker posts at once, so that a source that hangs does not delay others
	limit   = 15 * time.Second // for posting one notice
	// interval is the least time between two notices about a task: positions change often, and Slack limits edits.
	interval = 15 * time.Second
	// maxFailed is how often one is shown again after errors, each time after twice as long, for two hours in all.
	maxFailed = 8
	// maxKept is how many are kept for later. Others are dropped, because the task's status has the reason.
	maxKept = 1000
)

// Notifier posts notices. It is safe for concurrent use.
type Notifier struct {
	store   *store.Store
	sources *sources.Set
	log     *slog.Logger

	interval time.Duration
	tokens   chan struct{}  // one for each notice that is being posted
	posting  sync.WaitGroup // counts them

	mu    sync.Mutex
	later map[string]Notice // by task: notices to show later
}

// New returns a notifier.
func New(s *store.Store, all *sources.Set, log *slog.Logger) *Notifier {
	return &Notifier{
		store: s, sources: all, log: log, interval: interval, tokens: make(chan struct{}, posters),
		later: map[string]Notice{},
	}
}

// Notice is a notice of why a task waits.
type Notice struct {
	ID       string // of the task
	Delivery int
	// Key identifies the reason: the same one is posted once.
	Key string
	// Repeats says that the leader sees the reason, and posts it again.
	Repeats bool

	marked bool      // the reason is marked as told: only the status message is missing
	failed int       // how often that has failed
	at     time.Time // when to post it again
}

// Wait waits until nothing is being posted. No more may be begun meanwhile.
func (n *Notifier) Wait() { n.posting.Wait() }

// Post posts a notice, unless it has the key of the last one that was posted. It does not block. If it is too soon
// after another one, or too many are under way, it is posted later, if it is still true.
func (n *Notifier) Post(t Notice) {
	n.mu.Lock()
	delete(n.later, t.ID)
	n.mu.Unlock()
	n.postNow(t)
}

// PostLater posts the notices that are due.
func (n *Notifier) PostLater(context.Context) {
	for _, t := range n.due(posters) {
		n.postNow(t)
	}
}

// postNow posts a notice in the background, or keeps it for later.
func (n *Notifier) postNow(t Notice) {
	begun := n.Background(func() {
		ctx, cancel := context.WithTimeout(logline.WithRun(context.Background(), t.ID), limit)
		defer cancel()
		logline.Warn(n.log, n.explain(ctx, t), "post why a task waits", "run", t.ID)
	})
	if !begun {
		n.keep(t, 0)
	}
}

// Background posts something in the background. It returns false, and does nothing, if too many are under way.
func (n *Notifier) Background(post func()) bool {
	select {
	case n.tokens <- struct{}{}:
	default:
		return false
	}
	n.posting.Go(func() {
		defer func() { <-n.tokens }()
		post()
	})
	return true
}

// explain shows why a task waits. If that fails, it keeps the notice for later.
func (n *Notifier) explain(ctx context.Context, t Notice) error {
	err := n.tell(ctx, &t)
	if err != nil {
		n.retry(t)
	}
	return err
}

// tell marks the reason of a notice as told, unless that is done, and shows it. It does nothing if the notice is no
// longer true, was told before, or never can be shown here: then nothing is marked, so that another worker shows it. If
// another one was told just now, it keeps this one.
func (n *Notifier) tell(ctx context.Context, t *Notice) error {
	rec, err := n.store.Get(ctx, t.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil || rec.State != store.Waiting {
		return err
	}
	task, source, _ := n.sources.Read(rec)
	if source == nil {
		return nil
	}
	if !t.marked {
		// The task may run for a moment after this, to see whether it still has to wait.
		told, early, err := n.store.Explain(ctx, t.ID, t.Delivery, t.Key, n.interval)
		if early > 0 {
			n.keep(*t, early)
		}
		if err != nil || told == nil {
			return err
		}
		rec, t.marked = *told, true
	}
	return n.show(ctx, rec, task, source)
}

// retry keeps a notice after an error, as often as that may happen.
func (n *Notifier) retry(t Notice) {
	if t.failed < maxFailed {
		t.failed++
		n.keep(t, n.interval<<t.failed)
	}
}

// keep keeps a notice for later, unless the leader sees its reason again, there is a newer one, or there are too many.
func (n *Notifier) keep(t Notice, d time.Duration) {
	t.at = time.Now().Add(d)
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, newer := n.later[t.ID]; (t.marked || !t.Repeats) && !newer && len(n.later) < maxKept {
		n.later[t.ID] = t
	}
}

// due removes and returns at most that many notices that are due.
func (n *Notifier) due(most int) (list []Notice) {
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
func (n *Notifier) show(ctx context.Context, rec store.Record, t tasks.Task, source tasks.Source) error {
	places, err := n.store.Places(ctx, []store.Record{rec})
	if err != nil {
		return err
	}
	if rec.Blocked != (store.Blocked{}) {
		rec.Blocked.Place = places[0]
	}
	if waits := source.Capabilities().Waits; waits != nil {
		return waits(ctx, t, tasks.WaitingHeadline(record.Why(rec), rec.At, time.Now()))
	}
	return nil
}

// SayOnce posts a message about a task to its thread, if its source can speak and first returns true, and reports
// whether it did. If a notice has the same, a source that shows notices says nothing.
func (n *Notifier) SayOnce(
	ctx context.Context, id, text string, noticed bool, first func(context.Context) (bool, error),
) (said bool, _ error) {
	ctx, cancel := context.WithTimeout(logline.WithRun(ctx, id), limit)
	defer cancel()
	rec, err := n.store.Get(ctx, id)
	if err != nil {
		return false, err
	}
	t, source, err := n.sources.Read(rec)
	if err != nil {
		return false, err
	}
	can := source.Capabilities()
	if !can.TalkAbout(t) {
		return false, nil
	}
	if is, err := first(ctx); err != nil || !is {
		return false, err
	}
	if noticed && can.Waits != nil && (can.ShowsWait == nil || can.ShowsWait(t)) {
		return false, nil
	}
	if err := can.Say(ctx, t, text); err != nil {
		return false, err
	}
	return true, nil
}

// PlaceKey identifies a notice about a full scope or, without a scope, a busy thread. Further back than third, a new
// position is worth a notice only when it has halved.
func PlaceKey(b store.Blocked) string {
	place := b.Place
	if place > 3 {
		place = 1 << (bits.Len(uint(place)) - 1)
	}
	return fmt.Sprintf("%s %d", b.Scope, place)
}
