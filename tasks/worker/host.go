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

// host is the worker's side of one run of the agent.
type host struct {
	*mailbox // Next and Idle: messages that are posted in the thread during the run

	record *recorder
	report *pendingReport
	given  *answers
	talk   *talk  // nil if the agent cannot talk with people
	slow   func() // called when the model throttles the run; does not block
}

// Event passes an event to the store and the report without waiting. Only a live report gets ToolInput events; the
// complete input follows.
func (h *host) Event(e agent.Event) {
	if e.Kind != agent.ToolInput {
		h.record.add(e)
	}
	if e.Kind == agent.Taken {
		h.markRead(e.Text)
	}
	h.given.note(e)
	if throttles(e.Class) {
		h.slow()
	}
	h.report.Update(e)
}

// emit passes an event of errand's own to the store and the report without waiting.
func (h *host) emit(e agent.Event) {
	h.record.add(e)
	h.report.Update(e)
}

// Permit asks people for approval, if the agent can talk with them.
func (h *host) Permit(ctx context.Context, r agent.ToolRequest) agent.Decision {
	switch {
	case r.Human: // the CLI's own question tool; errand's is ask_user
		return agent.Decision{Reason: "This tool is not available. Use ask_user, if you have it. Otherwise decide " +
			"yourself and state your assumptions in your answer."}
	case h.talk != nil:
		return h.talk.permit(ctx, r)
	}
	reason := "This needs a person's approval, and no one is available to give it. Continue without it, and say in " +
		"your answer what is left to do."
	if r.Reason != "" {
		reason += " Reason: " + r.Reason
	}
	return agent.Decision{Reason: reason}
}

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
func (r *run) record() *recorder {
	warned := false
	return newRecorder(func(events ...json.RawMessage) error {
		err := r.Claim.Append(r.Detached, events...)
		if err != nil && !warned {
			warned = true
			r.worker.cfg.Log.Warn("store events", "run", r.Claim.ID(), "err", err)
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

// pendingReport is a report that may still be opening, so that the run does not wait for the source. A nil
// pendingReport is a report that was never opened.
type pendingReport struct {
	done   chan struct{}
	cancel context.CancelFunc
	report tasks.Report // set before done is closed; nil if it could not be opened
}

// openReport opens the task's report in the background. The run continues if that fails; posting the final message
// opens it again.
func (r *run) openReport(j job) *pendingReport {
	ctx, cancel := context.WithCancel(r.Life)
	o := &pendingReport{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(o.done)
		report, err := j.source.Open(ctx, j.task)
		if err != nil {
			r.worker.cfg.Log.Warn("open report", "run", j.task.ID, "source", j.task.Source, "err", err)
			return
		}
		o.report = report
	}()
	return o
}

// Update passes an event to the report if it is open.
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

// get waits for the report, which takes a few bounded requests of the source. It returns nil if the report could not
// be opened.
func (o *pendingReport) get() tasks.Report {
	if o == nil {
		return nil
	}
	<-o.done
	return o.report
}

// leave stops the report's background work and waits for it.
func (o *pendingReport) leave() {
	if o != nil {
		o.cancel()
		<-o.done
	}
}

// answers collects the answers of a task's finished turns. A resumed run does not repeat them, so they are part of
// its checkpoint. It is safe for concurrent use.
type answers struct {
	before string // answers of the task's earlier runs

	mu    sync.Mutex
	given string
}

// newAnswers starts with the answers of earlier runs.
func newAnswers(before *resumeState) *answers {
	if !before.goesOn() {
		return &answers{}
	}
	return &answers{before: before.Answers, given: before.Answers}
}

// after returns the answers of earlier runs followed by text.
func (a *answers) after(text string) string {
	if a.before == "" {
		return text
	}
	return format.Paragraphs(a.before, text)
}

// note records the answer of a turn.
func (a *answers) note(e agent.Event) {
	if e.Kind != agent.TurnEnd || e.Error {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.given, _ = format.Head(format.Paragraphs(a.given, e.Text), maxAnswers)
}

func (a *answers) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.given
}
