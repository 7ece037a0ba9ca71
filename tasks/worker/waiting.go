package worker

import (
	"context"
	"fmt"
	"math/bits"
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

// tellings holds the notices of why tasks wait. It is safe for concurrent use.
type tellings struct {
	apart  time.Duration // waitsApart
	tokens chan struct{} // one for each notice that is being posted

	mu    sync.Mutex
	later map[string]telling // by task: notices to post later
}

// telling is a notice of why a task waits. key identifies the reason.
type telling struct {
	id       string
	delivery int
	key, why string
	asks     bool      // the task is delivered again soon, and will then report its reason again
	at       time.Time // when to post it; zero: at once
}

// maxTellings is how many notices are kept for later. Others are dropped, because the task's status has the reason.
const maxTellings = 1000

func newTellings() tellings {
	return tellings{apart: waitsApart, tokens: make(chan struct{}, posters), later: map[string]telling{}}
}

// put keeps a notice for later, unless there is a newer one or there are too many.
func (l *tellings) put(t telling) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, newer := l.later[t.id]; !t.asks && !newer && len(l.later) < maxTellings {
		l.later[t.id] = t
	}
}

// drop drops the notice of a task.
func (l *tellings) drop(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.later, id)
}

// due removes and returns at most n notices that are due.
func (l *tellings) due(n int) (list []telling) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, t := range l.later {
		if len(list) < n && !time.Now().Before(t.at) {
			list = append(list, t)
			delete(l.later, id)
		}
	}
	return list
}

// tellWait reports why a task waits, to the task's followers and in the place where it was requested, unless that was
// the last reason reported. It does not block. If it is too soon after another notice, or too many are under way, it
// is posted later, if it is still true.
func (w *Worker) tellWait(t telling) {
	w.tellings.drop(t.id)
	w.tell(t)
}

// tellLater posts the notices that are due.
func (w *Worker) tellLater(context.Context) {
	for _, t := range w.tellings.due(posters) {
		w.tell(t)
	}
}

func (w *Worker) tell(t telling) {
	select {
	case w.tellings.tokens <- struct{}{}:
	default:
		t.at = time.Now()
		w.tellings.put(t)
		return
	}
	w.posting.Go(func() {
		defer func() { <-w.tellings.tokens }()
		ctx, cancel := context.WithTimeout(withRun(context.Background(), t.id), sayLimit)
		defer cancel()
		if !t.at.IsZero() {
			if rec, err := w.store.Get(ctx, t.id); err != nil || rec.Why != t.why || rec.Blocked != (store.Blocked{}) {
				return // it no longer waits, or waits for another reason
			}
		}
		text := "Waiting: " + t.why
		event := agent.Event{Kind: agent.Notice, Tool: tasks.Waits, Text: text, Time: time.Now()}
		fresh, early, err := w.store.Explain(ctx, t.id, store.Explanation{Delivery: t.delivery, Key: t.key, Event: format.JSON(event), Interval: w.tellings.apart})
		switch {
		case err == nil && fresh:
			err = w.showWait(ctx, t.id, text)
		case early > 0:
			t.at = time.Now().Add(early)
			w.tellings.put(t)
		}
		if err != nil {
			w.log.Warn("tell why a task waits", "run", t.id, "err", err)
		}
	})
}

func (w *Worker) showWait(ctx context.Context, id, text string) error {
	rec, err := w.store.Get(ctx, id)
	if err != nil {
		return err
	}
	t, source, err := w.read(rec)
	if to, ok := source.(tasks.Waiter); err == nil && ok && rec.State == store.Waiting {
		err = to.Waits(ctx, t, text)
	}
	return err
}
