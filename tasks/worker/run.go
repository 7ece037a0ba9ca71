package worker

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/worker/hold"
	"github.com/errand-fleet/errand/tasks/worker/machine"
)

const (
	maxAttempts = 3 // tries of a task if the infrastructure fails

	// sourceWait is how long a task waits for a worker that is set up for its source, ± 50 %.
	sourceWait = 500 * time.Millisecond
)

// run is a claimed task that this worker works on.
type run struct {
	*hold.Hold

	slot   *machine.Slot
	logs   runLogs
	worker *Worker

	// Set by the goroutine of process, which alone uses them.
	report  *pendingReport
	source  string       // name of the task's source; set by accept
	mail    *mailbox     // nil until accept has decoded the task
	result  agent.Result // zero until the agent has run
	repos   []string     // see conversation; set by prepare
	reached []string     // hosts that are to be proposed as the egress list
	lines   int          // changed lines of the change that it reviews
}

// hold keeps the claim renewed and returns a run that is stopped by a cancel, by the worker's drain or by the loss of
// the claim.
func (w *Worker) hold(ctx context.Context, claim *store.Claim, s *machine.Slot) *run {
	return &run{Hold: hold.New(ctx, claim, w.drained, w.cfg.Log), slot: s, worker: w}
}

// leave ends errand's work for the run.
func (r *run) leave() {
	r.giveUp()
	r.uploadLogs() // the thread's next task does not wait for it
}

// giveUp releases the claim, so that the thread's next task can start.
func (r *run) giveUp() {
	r.Stop()
	r.report.leave() // the next run of the task finds what this report has posted
	r.Release()
	r.worker.cfg.deliver(r.Detached)
}

// end stores the task's ending. stored is false if another worker has the claim.
func (w *Worker) end(r *run, e tasks.Ending) (stored bool, err error) {
	e.Reason = w.cfg.Policy.Redactor.String(e.Reason)
	if e.Result.Error != nil {
		failure := *e.Result.Error
		failure.Message = w.cfg.Policy.Redactor.String(failure.Message)
		e.Result.Error = &failure
	}
	if !e.Found { // a found ending already lists what its message covers
		e.Covers = r.mail.covered()
	}
	body, with := e.Encode(), store.Covered{IDs: e.Covers, Ending: e.ForAbsorbed(r.Claim.ID())}
	stored, err = r.Persist("end", func() error { return r.Claim.EndWith(r.Detached, body, with) })
	if r.Claim.Restored() {
		w.cfg.Log.Warn("task restored: redis had lost it", "run", r.Claim.ID(), "thread", r.Claim.Thread())
	}
	if !stored && err == nil {
		w.cfg.Meter.Returned(r.Claim.Record().Class, ReturnLost)
	}
	if stored && e.Found {
		w.endCovered(r, e)
	}
	return stored, err
}

// notice adds an event to the run's events that says what happens to its task outside the run.
func (r *run) notice(text string) {
	text = r.worker.cfg.Policy.Redactor.String(text)
	e := agent.Event{Kind: agent.Notice, Text: text, Time: time.Now()}
	r.report.Update(e)
	r.worker.cfg.warn(r.Claim.Append(r.Detached, format.JSON(e)), "store events", "run", r.Claim.ID())
}

// deliver enqueues what may start now, instead of when the leader looks.
func (c *Config) deliver(ctx context.Context) { c.warn(c.Queue.Deliver(ctx), "make deliveries") }

// briefer asks what a task may do now, and what its source tells the agent about it. It is safe for concurrent use.
type briefer struct{ *Config }

// permit limits the profile of a task to what the policy and the rights of its asker allow now. An *tasks.InputError
// refuses the task. limited says why the run may only read although the task asks for more; empty: it may do all.
func (d *briefer) permit(ctx context.Context, t tasks.Task) (_ tasks.Task, limited string, _ error) {
	t, err := d.Policy.Now(t)
	if err != nil {
		return t, "", err
	}
	t.Profile, limited, err = d.Policy.Permit(ctx, d.Store, t, d.Runner.Sandboxed())
	return t, limited, err
}

// brief returns the source's brief of a task, with the pictures that are stored for the task.
func (d *briefer) brief(ctx context.Context, s tasks.Source, t tasks.Task, files string) (tasks.Brief, error) {
	b, err := s.Brief(ctx, t, files)
	if err != nil {
		return tasks.Brief{}, fmt.Errorf("brief: %w", err)
	}
	if len(t.Pictures) == 0 {
		return b, nil
	}
	data, err := d.Store.Pictures.Read(ctx, t.ID)
	if err != nil {
		return tasks.Brief{}, err
	}
	for i, p := range t.Pictures {
		if i >= len(data) {
			b.Prompt.Text = cmp.Or(b.Prompt.Text,
				t.Prompt) + fmt.Sprintf("\n\n(The picture %q came with this message but is no longer stored.)", p.Name)
			continue
		}
		b.Prompt.Files = append(b.Prompt.Files, agent.File{Name: p.Name, Type: p.Type, Data: data[i]})
	}
	return b, nil
}
