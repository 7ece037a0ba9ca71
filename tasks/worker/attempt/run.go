package attempt

import (
	"context"
	"errors"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/worker/hold"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/tasks/worker/machine"
)

// maxAttempts is how often a task is tried if the infrastructure fails.
const maxAttempts = 3

// run is a claimed task that this worker works on.
type run struct {
	*hold.Hold

	slot *machine.Slot
	logs runLogs

	// Set by the goroutine of Process, which alone uses them.
	report *pendingReport // nil until prepare has opened it
	mail   *mailbox       // nil until open has decoded the task
	result agent.Result   // zero until the agent has run
	second agent.Result   // of its second look, which is a part of result; zero if there was none
}

// cancelled reports whether a person or the source has ended the task.
func (r *run) cancelled() bool {
	_, is := errors.AsType[record.Cancellation](r.Cause())
	return is
}

// hold keeps the claim renewed and returns a run that is stopped by a cancel, by the worker's drain or by the loss of
// the claim.
func (p *Processor) hold(ctx context.Context, claim *store.Claim, s *machine.Slot) *run {
	return &run{Hold: hold.New(ctx, claim, p.Drained, p.Log), slot: s}
}

// close ends errand's work for the run.
func (p *Processor) close(r *run) {
	p.handOn(r)
	p.uploadLogs(r) // the thread's next task does not wait for it
}

// handOn releases the claim, so that the thread's next task can start.
func (p *Processor) handOn(r *run) {
	r.Stop()
	r.report.stop() // the next run of the task finds what this report has posted
	r.Release()
	p.deliver(r.Detached)
}

// deliver enqueues what may start now, instead of when the leader looks.
func (p *Processor) deliver(ctx context.Context) {
	logline.Warn(p.Log, p.Queue.Deliver(ctx), "make deliveries")
}

// end stores the task's ending and returns it as it is stored; nil if another worker has the claim.
func (p *Processor) end(r *run, e tasks.Ending) (*tasks.Ending, error) {
	e.Reason = p.Policy.Redactor.String(e.Reason)
	if e.Result.Error != nil {
		failure := *e.Result.Error
		failure.Message = p.Policy.Redactor.String(failure.Message)
		e.Result.Error = &failure
	}
	if !e.Found { // a found ending already lists what its message covers
		e.Covers = r.mail.covered()
	}
	body, with := e.Encode(), store.Covered{IDs: e.Covers, Ending: e.ForAbsorbed(r.Claim.ID())}
	stored, err := r.Persist("end", func() error { return r.Claim.EndWith(r.Detached, body, with) })
	if r.Claim.Restored() {
		p.Log.Warn("task restored: redis had lost it", "run", r.Claim.ID(), "thread", r.Claim.Thread())
	}
	if err != nil {
		return nil, err
	}
	if !stored {
		p.Meter.Returned(r.Claim.Record().Class, ReturnLost)
		return nil, nil
	}
	if e.Found {
		p.endCovered(r, e)
	}
	return &e, nil
}

// notice adds an event to the run's events that says what happens to its task outside the run.
func (p *Processor) notice(r *run, text string) {
	text = p.Policy.Redactor.String(text)
	e := agent.Event{Kind: agent.Notice, Text: text, Time: time.Now()}
	r.report.Update(e)
	logline.Warn(p.Log, r.Claim.Append(r.Detached, format.JSON(e)), "store events", "run", r.Claim.ID())
}
