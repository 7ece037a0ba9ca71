package worker

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// host is what the flow is to a run of the agent.
type host struct {
	record *recorder
	report *pendingReport
	given  *answers
	mail   *mailbox
	talk   *talk  // nil where the agent cannot talk with people
	slow   func() // told when the model throttles the run; does not block
}

// Event tells the store and the report; neither waits. A tool's input as it is being written is for a live report alone: the whole follows.
func (h *host) Event(e agent.Event) {
	if e.Kind != agent.ToolInput {
		h.record.add(e)
	}
	if e.Kind == agent.Taken {
		h.mail.took(e.Text)
	}
	h.given.note(e)
	if throttles(e.Class) {
		h.slow()
	}
	h.report.Update(e)
}

// Permit asks people, where the agent can talk with them.
func (h *host) Permit(ctx context.Context, r agent.ToolRequest) agent.Decision {
	switch {
	case r.Human: // the CLI's own way of asking; ours is the tool ask_user
		return agent.Decision{Reason: "Nobody answers this tool. Use ask_user, if you have it, or decide yourself and say in your answer what you assumed."}
	case h.talk != nil:
		return h.talk.permit(ctx, r)
	}
	reason := "This needs a person's approval, and nobody is there to give it. Go on without it, and say in your answer what is left to do."
	if r.Reason != "" {
		reason += " Why it needs approval: " + r.Reason
	}
	return agent.Decision{Reason: reason}
}

// Next brings what is said in the thread meanwhile.
func (h *host) Next(ctx context.Context) (agent.Message, bool) { return h.mail.Next(ctx) }

// Idle ends the session when nothing has been said.
func (h *host) Idle(ctx context.Context) (agent.Message, bool) { return h.mail.Idle(ctx) }

// Bounds of what waits to be stored, and of one stored event.
const (
	recordEvery = 100 * time.Millisecond // pieces that come closer together are joined
	recordSoon  = 25 * time.Millisecond  // behind what no piece is joined to: the first word of an answer does not wait for long
	maxWaiting  = 1000
	maxText     = 8 << 10
	maxEvent    = 16 << 10 // what the store takes
)

// recorder brings events to the store without ever holding up the agent: pieces of text are joined while they wait, and beyond
// maxWaiting the oldest are dropped; the log has them all.
type recorder struct {
	append func(...json.RawMessage) error
	wake   chan struct{}
	done   sync.WaitGroup

	mu      sync.Mutex
	waiting []agent.Event
	closed  bool
}

// record starts a recorder for a run.
func (w *Worker) record(r *run) *recorder {
	warned := false
	return newRecorder(func(events ...json.RawMessage) error {
		err := r.claim.Append(r.detached, events...)
		if err != nil && !warned {
			warned = true
			w.log.Warn("store events", "run", r.claim.ID(), "err", err)
		}
		return err
	})
}

func newRecorder(store func(...json.RawMessage) error) *recorder {
	rec := &recorder{append: store, wake: make(chan struct{}, 1)}
	rec.done.Go(rec.loop)
	return rec
}

// add takes an event. It does not block.
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
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// pieces reports whether an event is one of those that come in pieces.
func pieces(e agent.Event) bool { return e.Kind == agent.Text || e.Kind == agent.Thinking }

// joins reports whether b is the continuation of a.
func joins(a, b agent.Event) bool {
	return a.Kind == b.Kind && pieces(b) && a.Parent == b.Parent &&
		len(a.Text)+len(b.Text) <= maxText
}

// close stores what is left and returns when nothing more will be stored.
func (r *recorder) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	r.done.Wait()
}

// loop stores the first piece at once, so that a reader sees it as soon as it is there, and then joins what comes.
func (r *recorder) loop() {
	for range r.wake {
		r.mu.Lock()
		batch, closed := r.waiting, r.closed
		r.waiting = nil
		r.mu.Unlock()
		if len(batch) > 0 {
			_ = r.append(encode(batch)...) // said once by the caller; the log has everything
		}
		if closed {
			return
		}
		apart := recordEvery
		if len(batch) > 0 && !slices.ContainsFunc(batch, pieces) {
			apart = recordSoon
		}
		pause := time.NewTimer(apart)
		<-pause.C
	}
}

// encode marshals events, each within what the store takes. Text is split rather than cut, because chat is read from here; of
// anything else the input goes first, and then the end of the text.
func encode(events []agent.Event) []json.RawMessage {
	var list []json.RawMessage
	for _, e := range events {
		for rest := e.Text; ; {
			e.Text, rest = format.Head(rest, maxText)
			b := format.JSON(e)
			// Escaping can make six bytes of one.
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
			if rest == "" || e.Kind != agent.Text && e.Kind != agent.Thinking {
				break
			}
		}
	}
	return list
}

// pendingReport is a report on its way: the run does not wait for the source's answer. A nil opening is one that never began.
type pendingReport struct {
	done   chan struct{}
	cancel context.CancelFunc
	report tasks.Report // set before done is closed; nil when it could not be opened
}

// open begins the task's report. A run goes on without one; the final message opens it again.
func (w *Worker) open(r *run, s tasks.Source, t tasks.Task) *pendingReport {
	ctx, cancel := context.WithCancel(r.life)
	o := &pendingReport{done: make(chan struct{}), cancel: cancel}
	r.report = o
	go func() {
		defer close(o.done)
		report, err := s.Open(ctx, t)
		if err != nil {
			w.log.Warn("open report", "run", t.ID, "source", t.Source, "err", err)
			return
		}
		o.report = report
	}()
	return o
}

// Update hands an event to the report, if it is there by now.
func (o *pendingReport) Update(e agent.Event) {
	if o == nil {
		return
	}
	select {
	case <-o.done:
		if o.report != nil {
			o.report.Update(e)
		}
	default:
	}
}

// get waits for the report, which takes a few bounded calls of the source's; nil when there is none.
func (o *pendingReport) get() tasks.Report {
	if o == nil {
		return nil
	}
	<-o.done
	return o.report
}

// leave ends what the report started and returns when nothing of it is under way.
func (o *pendingReport) leave() {
	if o != nil {
		o.cancel()
		<-o.done
	}
}
