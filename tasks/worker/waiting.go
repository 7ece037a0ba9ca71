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

// noticesApart is the minimum time between a notice and an update of the task's status message, because positions
// change often and Slack limits edits.
const noticesApart = 15 * time.Second

// noticeLimit bounds the time for posting one notice.
const noticeLimit = 15 * time.Second

// maxNotices is how many notices are kept for later. Others are dropped, because the task's status has the reason.
const maxNotices = 1000

// waitNotices posts notices of why tasks wait, to the tasks' followers and in the places where they were requested. It
// is safe for concurrent use.
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
	message  string    // text of a message for the thread; empty: why is shown in the task's status message
	repeats  bool      // the task is delivered again soon, and will then report its reason again
	at       time.Time // when to post it; zero: at once
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
		event, apart := agent.Event{Kind: agent.Notice, Text: t.message, Time: time.Now()}, time.Duration(0)
		if t.message == "" {
			event.Tool, event.Text, apart = tasks.Waits, "Waiting: "+t.why, n.apart
		}
		fresh, early, err := n.Store.Explain(ctx, t.id, store.Explanation{Delivery: t.delivery, Key: t.key, Event: format.JSON(event), Interval: apart})
		switch {
		case err == nil && fresh:
			err = n.show(ctx, t, event.Text)
		case early > 0:
			n.keep(t, early)
		}
		if err != nil {
			n.Log.Warn("post why a task waits", "run", t.id, "err", err)
		}
	})
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

// show shows a notice in the place where the task was requested, as far as its source can.
func (n *waitNotices) show(ctx context.Context, w waitNotice, text string) error {
	rec, err := n.Store.Get(ctx, w.id)
	if err != nil || rec.State != store.Waiting {
		return err
	}
	t, source, err := n.tasks.read(rec)
	if err != nil {
		return err
	}
	if w.message != "" {
		if to, ok := talker(source, t); ok {
			return to.Say(ctx, t, text)
		}
	} else if to, ok := source.(tasks.Waiter); ok {
		return to.Waits(ctx, t, text)
	}
	return nil
}

// fullKey identifies a notice about a full scope. Further back than third, a new position is worth a notice only when
// it has halved.
func fullKey(b store.Blocked) string {
	place := b.Place
	if place > 3 {
		place = 1 << (bits.Len(uint(place)) - 1)
	}
	return fmt.Sprintf("%s %d", b.Scope, place)
}

// parked says why and until when a task waits, and how to cancel it.
func parked(id string, wait store.Wait) string {
	return fmt.Sprintf("This waits until %s: %s. The work so far is kept, and it continues by itself. %s",
		moment(wait.At, time.Now()), wait.Why, howToCancel(id))
}

func howToCancel(id string) string {
	return "To stop it, cancel it in the console or with `enqueue cancel " + id + "`."
}
