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

// waitsApart is the least time between two words on why a task waits: places in a line change often, and Slack's edits are counted.
const waitsApart = 15 * time.Second

// fullKey names what is told of a full scope: another place further back is news only when it has halved.
func fullKey(b store.Blocked) string {
	place := b.Place
	if place > 3 {
		place = 1 << (bits.Len(uint(place)) - 1)
	}
	return fmt.Sprintf("%s %d", b.Scope, place)
}

// tellings are what is to be told of tasks that wait. Safe for concurrent use.
type tellings struct {
	apart  time.Duration // waitsApart
	tokens chan struct{} // one for each that is being told

	mu    sync.Mutex
	later map[string]telling // by task: what could not be told yet
}

// telling is why a task waits: key names it.
type telling struct {
	id       string
	delivery int
	key, why string
	asks     bool      // the task asks again soon, and is told then what could not be told now
	at       time.Time // to be told then; zero: at once
}

// maxTellings is how many tasks are to be told of later. What comes beyond is not told: the task's status has it.
const maxTellings = 1000

func newTellings() tellings {
	return tellings{apart: waitsApart, tokens: make(chan struct{}, posters), later: map[string]telling{}}
}

// put keeps what is to be told later of a task, unless there is something newer, or too much.
func (l *tellings) put(t telling) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, newer := l.later[t.id]; !t.asks && !newer && len(l.later) < maxTellings {
		l.later[t.id] = t
	}
}

// drop forgets what was to be told of a task.
func (l *tellings) drop(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.later, id)
}

// due takes what is to be told now, at most n.
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

// tellWait tells those who follow a task, and the place where it was asked for, why it waits, unless that was told last. Nobody waits for it.
// What comes too soon after another reason, or while too much else is told, is told later if it holds then.
func (w *Worker) tellWait(t telling) {
	w.tellings.drop(t.id)
	w.tell(t)
}

// tellLater tells what could not be told before.
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
				return // it has gone on, or waits for something else
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
