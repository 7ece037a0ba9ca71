package attempt

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// Bounds of the events that wait to be stored, and of one stored event.
const (
	recordEvery = 100 * time.Millisecond // pieces that arrive closer together are joined
	recordSoon  = 25 * time.Millisecond  // after other events: the first word of an answer does not wait long
	maxWaiting  = 1000
	maxText     = 8 << 10
	maxEvent    = 16 << 10 // the store's limit
)

// recorder passes events to the store and never delays the agent. It joins pieces of text while they wait, and drops
// the oldest events beyond maxWaiting; the log has all of them.
type recorder struct {
	append func(...json.RawMessage) error
	wake   chan struct{}
	done   sync.WaitGroup

	mu      sync.Mutex
	waiting []agent.Event
	closed  bool
}

// record starts a recorder for a run.
func (p *Processor) record(r *run) *recorder {
	warned := false
	return newRecorder(func(events ...json.RawMessage) error {
		err := r.Claim.Append(r.Detached, events...)
		if err != nil && !warned {
			warned = true
			p.Log.Warn("store events", "run", r.Claim.ID(), "err", err)
		}
		return err
	})
}

func newRecorder(store func(...json.RawMessage) error) *recorder {
	rec := &recorder{append: store, wake: make(chan struct{}, 1)}
	rec.done.Go(rec.loop)
	return rec
}

// add queues an event. It does not block.
func (r *recorder) add(e agent.Event) {
	r.mu.Lock()
	if last := len(r.waiting) - 1; last >= 0 && joins(r.waiting[last], e) {
		r.waiting[last].Text += e.Text
	} else {
		if len(r.waiting) >= maxWaiting {
			r.waiting = r.waiting[1:]
		}
		r.waiting = append(r.waiting, e)
	}
	r.mu.Unlock()
	signal(r.wake)
}

// signal leaves a token in a channel with room for one. It does not block.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pieces reports whether an event is a piece of a longer text.
func pieces(e agent.Event) bool { return e.Kind == agent.Text || e.Kind == agent.Thinking }

// joins reports whether b continues a.
func joins(a, b agent.Event) bool {
	return a.Kind == b.Kind && pieces(b) && a.Parent == b.Parent && len(a.Text)+len(b.Text) <= maxText
}

// close stores the remaining events and returns when that is done.
func (r *recorder) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	signal(r.wake)
	r.done.Wait()
}

// loop stores the first piece at once, so that readers see it, and joins the following ones.
func (r *recorder) loop() {
	for range r.wake {
		r.mu.Lock()
		batch, closed := r.waiting, r.closed
		r.waiting = nil
		r.mu.Unlock()
		if len(batch) > 0 {
			_ = r.append(encode(batch)...) // append logs the first error; the log has every event
		}
		if closed {
			return
		}
		apart := recordEvery
		if len(batch) > 0 && !slices.ContainsFunc(batch, pieces) {
			apart = recordSoon
		}
		<-time.After(apart)
	}
}

// encode marshals events, each within the store's limit. It splits text instead of cutting it, because the chat reads
// it from here. For other events it drops the input first and then the end of the text.
func encode(events []agent.Event) []json.RawMessage {
	var list []json.RawMessage
	for _, e := range events {
		for rest := e.Text; ; {
			e.Text, rest = format.Head(rest, maxText)
			b := format.JSON(e)
			// Escaping can turn one byte into six.
			for n := maxText / 2; len(b) > maxEvent && n > 0; n /= 2 {
				if e.Input != nil {
					e.Input = nil
				} else {
					var tail string
					e.Text, tail = format.Head(e.Text, n)
					rest = tail + rest
				}
				b = format.JSON(e)
			}
			list = append(list, b)
			if rest == "" || !pieces(e) {
				break
			}
		}
	}
	return list
}
