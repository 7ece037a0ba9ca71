package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
)

// Status describes a task at one moment.
type Status struct {
	Task     Task      `json:"task"`
	Person   string    `json:"person,omitempty"` // the asker's configured name; see People
	State    string    `json:"state"`            // waiting, running, absorbed, ended
	Into     string    `json:"into,omitempty"`   // the task whose run absorbed this one and has its log and answer
	Position int       `json:"position,omitempty"`
	Attempt  int       `json:"attempt"`
	Delivery string    `json:"delivery"` // the asynq ID of its latest delivery
	Worker   string    `json:"worker,omitempty"`
	Created  time.Time `json:"created"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Retried  time.Time `json:"retried,omitzero"`    // when it was last retried
	At       time.Time `json:"not_before,omitzero"` // the earliest start of a waiting task
	Why      string    `json:"why,omitempty"`       // why it waits, as a clause; set for a running task only until its work begins
	Cancel   string    `json:"cancelled_by,omitempty"`
	Ending   *Ending   `json:"ending,omitempty"`

	Questions []Question `json:"questions,omitempty"` // open questions of a running task; only Desk.Status sets them
	Posted    bool       `json:"posted"`              // the final message was posted

	Unreadable string `json:"unreadable,omitempty"` // why the record cannot be read and what to do; the prompt says so, too
	flaw       string // the same without the ID and the remedy
}

// Stopping reports whether the task's run has been cancelled and has not ended yet.
func (s Status) Stopping() bool {
	return s.Ending == nil && s.Cancel != "" && (s.State == string(store.Running) || s.Into != "")
}

// Status returns the status of one task, or ErrNotFound.
func (d *Desk) Status(ctx context.Context, id string) (Status, error) {
	rec, err := d.store.Get(ctx, id)
	if err != nil {
		return Status{}, d.notFound(id, err)
	}
	return d.complete(ctx, rec)
}

// complete returns the status of a record, including what is stored outside the record.
func (d *Desk) complete(ctx context.Context, rec store.Record) (Status, error) {
	s := d.status(rec)
	if s.flaw != "" {
		return s, nil
	}
	var err error
	switch rec.State {
	case store.Waiting:
		s.Position, _ = d.store.Position(ctx, rec.ID) // the task may have started in the meantime
		s.follows(s.Position)
		list := []Status{s}
		d.noteUnable(ctx, list)
		s = list[0]
	case store.Running:
		s.Questions, err = d.open(ctx, rec)
	}
	if rec.Into != "" {
		err = d.shared(ctx, &s)
	}
	return s, err
}

// status returns the status of a record. If the record cannot be read, the prompt and the ending say so.
func (d *Desk) status(rec store.Record) Status {
	t, err := ReadTask(rec)
	if err != nil {
		t = standIn(rec, err)
	}
	s := Status{
		Task: t, State: string(rec.State), Attempt: rec.Attempt, Delivery: DeliveryID(rec.ID, rec.Delivery), Worker: rec.Worker,
		Cancel: rec.CancelBy, Into: rec.Into, Created: rec.Created, Started: rec.Started, Ended: rec.Ended, Retried: rec.Retried,
		Posted: rec.Outbox < 0,
	}
	if one, ok := d.policy.People.Find(t.Source, t.Actor); ok {
		s.Person = one.Name
	}
	if s.Why = reason(rec); rec.State == store.Waiting {
		s.At = rec.At
	}
	ending, broken := ReadEnding(rec)
	s.Ending = ending
	if bad, ok := errors.AsType[*UnreadableError](errors.Join(err, broken)); ok {
		s.Unreadable, s.flaw = bad.Error(), bad.Why
		if rec.Unreadable != "" { // the state is unreliable, and the task will never run
			s.State = string(store.Ended)
		}
		if s.Ending == nil && s.State == string(store.Ended) {
			s.Ending = &Ending{Kind: Failed, Reason: s.Unreadable, At: rec.Ended}
		}
	}
	return s
}

// shared completes the status of an absorbed task with its host's: the worker, the start and the whole ending, which
// only the host stores. If the host was retried or has expired, the task's own short ending remains.
func (d *Desk) shared(ctx context.Context, s *Status) error {
	rec, err := d.store.Get(ctx, s.Into)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("task %s: %w", s.Into, err)
	}
	host := d.status(rec)
	switch {
	case s.Ending == nil:
		s.Started, s.Worker, s.Attempt, s.Cancel = host.Started, host.Worker, host.Attempt, cmp.Or(s.Cancel, host.Cancel)
	case host.Ending != nil && host.Ending.At.Equal(s.Ending.At):
		s.Started, s.Worker, s.Attempt, s.Ending, s.Posted = host.Started, host.Worker, host.Attempt, host.Ending, host.Posted
	}
	return nil
}

// noWorker is why a task waits that no worker has claimed or postponed yet.
const noWorker = "no worker is free yet"

// reason returns why a task waits, as a clause for people. Every view shows the same clause. It is empty for a task
// that does not wait.
func reason(rec store.Record) string {
	switch {
	case rec.State == store.Running:
		return rec.Why // claimed, but its work has not begun
	case rec.State != store.Waiting:
		return ""
	case rec.Blocked != (store.Blocked{}):
		return BlockedBy(rec.Blocked)
	case rec.Why != "":
		return rec.Why
	}
	return noWorker
}

// follows sets how many tasks of the same thread come first, if no worker has looked at this task yet.
func (s *Status) follows(n int) {
	if s.Why == noWorker && n > 0 {
		s.Why = BlockedBy(store.Blocked{Place: n})
	}
}

// BlockedBy explains, as a clause, why a task could not be claimed.
func BlockedBy(b store.Blocked) string {
	switch {
	case b.Scope != "":
		return fmt.Sprintf("%d of %d runs busy %s; you are number %d", b.Runs, b.Max, inScopeOf(b.Scope), b.Place)
	case b.Place <= 1:
		return "an earlier task in its thread is running"
	}
	return fmt.Sprintf("%d tasks in its thread come first", b.Place)
}

// inScopeOf names a scope for people.
func inScopeOf(scope string) string {
	switch kind, name, _ := strings.Cut(scope, ":"); kind + ":" {
	case repoScope:
		return "in " + name
	case userScope:
		return "for the same person"
	}
	return "with the model account"
}
