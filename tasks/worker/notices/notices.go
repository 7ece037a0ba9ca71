// Package notices tells people why their tasks wait: in the tasks' status messages, where they were requested, and as
// messages in their threads.
package notices

import (
	"context"
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/tasks/worker/sources"
)

const (
	posters = 8 // notices that a worker posts at once, so that a source that hangs does not delay others
	// limit bounds the posting of one notice. It is not longer than interval, within which no other worker posts it.
	limit = 15 * time.Second
	// interval is the time between two notices about a task: positions change often, and Slack limits edits.
	interval = 15 * time.Second
)

// Notifier posts notices. It is safe for concurrent use.
type Notifier struct {
	store   *store.Store
	sources *sources.Set
	log     *slog.Logger

	interval time.Duration
	tokens   chan struct{}  // one for each notice that is being posted
	posting  sync.WaitGroup // counts them
}

// New returns a notifier.
func New(s *store.Store, all *sources.Set, log *slog.Logger) *Notifier {
	return &Notifier{store: s, sources: all, log: log, interval: interval, tokens: make(chan struct{}, posters)}
}

// Notice is a notice of why a task waits.
type Notice struct {
	ID       string // of the task
	Delivery int
	// Key identifies the reason: the same one is posted once.
	Key string
}

// Wait waits until nothing is being posted. No more may be begun meanwhile.
func (n *Notifier) Wait() { n.posting.Wait() }

// Post shows why a task waits, unless people know it by its key. It does not block. If it cannot be shown now, because
// another reason was shown just now, too many are under way or the source fails, the leader posts it again while it is
// true.
func (n *Notifier) Post(t Notice) {
	if !slices.Contains(n.sources.Names(), tasks.SourceOf(t.ID)) {
		return // the turn is for a worker that can show it
	}
	n.Background(func() {
		ctx, cancel := context.WithTimeout(logline.WithRun(context.Background(), t.ID), limit)
		defer cancel()
		logline.Warn(n.log, n.explain(ctx, t), "post why a task waits", "run", t.ID)
	})
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

// explain shows why a task waits, and then notes that it is shown: if this worker dies before, another one shows it.
func (n *Notifier) explain(ctx context.Context, t Notice) error {
	rec, err := n.store.Explain(ctx, t.ID, store.Explanation{Delivery: t.Delivery, Key: t.Key, Interval: n.interval})
	if err != nil || rec == nil {
		return err
	}
	task, source, err := n.sources.Read(*rec)
	if err != nil {
		return err
	}
	if err := n.show(ctx, *rec, task, source); err != nil {
		return err
	}
	return n.store.Explained(ctx, t.ID, t.Key)
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
