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

// Status is a task as it is at the moment.
type Status struct {
	Task     Task      `json:"task"`
	Person   string    `json:"person,omitempty"` // who asked, by the name the operator gave them; see People
	State    string    `json:"state"`            // waiting, running, absorbed, ended
	Into     string    `json:"into,omitempty"`   // the task whose run has taken it up: its log and its answer are there
	Position int       `json:"position,omitempty"`
	Attempt  int       `json:"attempt"`
	Delivery string    `json:"delivery"` // its latest one: an ID in the queue of its class
	Worker   string    `json:"worker,omitempty"`
	Created  time.Time `json:"created"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Retried  time.Time `json:"retried,omitzero"`    // since when it is tried again
	At       time.Time `json:"not_before,omitzero"` // a waiting task is not started earlier
	Why      string    `json:"why,omitempty"`       // what it waits for, as a clause; of a running task, if it has not begun to work
	Cancel   string    `json:"cancelled_by,omitempty"`
	Ending   *Ending   `json:"ending,omitempty"`

	Questions []Question `json:"questions,omitempty"` // of a running task, that wait for an answer; Status alone tells them
	Posted    bool       `json:"posted"`              // the final message is out

	Unreadable string `json:"unreadable,omitempty"` // why the record cannot be read, and what to do; the prompt says so, too
	flaw       string // the same without the ID and the remedy
}

// Stopping reports whether somebody has asked for the end of a run that goes on.
func (s Status) Stopping() bool {
	return s.Ending == nil && s.Cancel != "" && (s.State == string(store.Running) || s.Into != "")
}

// Status reads one task; ErrNotFound when there is none.
func (d *Desk) Status(ctx context.Context, id string) (Status, error) {
	rec, err := d.store.Get(ctx, id)
	if err != nil {
		return Status{}, d.notFound(id, err)
	}
	return d.complete(ctx, rec)
}

// complete is a record with what is kept beside it.
func (d *Desk) complete(ctx context.Context, rec store.Record) (Status, error) {
	s := d.status(rec)
	if s.flaw != "" {
		return s, nil
	}
	var err error
	switch rec.State {
	case store.Waiting:
		s.Position, _ = d.store.Position(ctx, rec.ID) // it may have started meanwhile
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

// status is a record with the name of who asked.
func (d *Desk) status(rec store.Record) Status {
	s := status(rec)
	if one, ok := d.policy.People.Find(s.Task.Source, s.Task.Actor); ok {
		s.Person = one.Name
	}
	return s
}

// status is a record for people. Of one that cannot be read it says so in the task's place, or in the ending's.
func status(rec store.Record) Status {
	t, err := ReadTask(rec)
	if err != nil {
		t = standIn(rec, err)
	}
	s := Status{
		Task: t, State: string(rec.State), Attempt: rec.Attempt, Delivery: DeliveryID(rec.ID, rec.Delivery), Worker: rec.Worker, Cancel: rec.CancelBy,
		Into: rec.Into, Created: rec.Created, Started: rec.Started, Ended: rec.Ended, Retried: rec.Retried, Posted: rec.Outbox < 0,
	}
	if s.Why = reason(rec); rec.State == store.Waiting {
		s.At = rec.At
	}
	ending, broken := ReadEnding(rec)
	s.Ending = ending
	if bad, ok := errors.AsType[*UnreadableError](errors.Join(err, broken)); ok {
		s.Unreadable, s.flaw = bad.Error(), bad.Why
		if rec.Unreadable != "" { // not even its state counts: nothing will come of it any more
			s.State = string(store.Ended)
		}
		if s.Ending == nil && s.State == string(store.Ended) {
			s.Ending = &Ending{Kind: Failed, Reason: s.Unreadable, At: rec.Ended}
		}
	}
	return s
}

// shared completes the status of a task that is, or was to its end, in the run of another: who runs it, and the whole ending, which is kept
// with that one as long as it has it. After that one was tried again, or has expired, the task's own short ending has to do.
func (d *Desk) shared(ctx context.Context, s *Status) error {
	rec, err := d.store.Get(ctx, s.Into)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("task %s: %w", s.Into, err)
	}
	host := status(rec)
	switch {
	case s.Ending == nil:
		s.Started, s.Worker, s.Attempt, s.Cancel = host.Started, host.Worker, host.Attempt, cmp.Or(s.Cancel, host.Cancel)
	case host.Ending != nil && host.Ending.At.Equal(s.Ending.At):
		s.Started, s.Worker, s.Attempt, s.Ending, s.Posted = host.Started, host.Worker, host.Attempt, host.Ending, host.Posted
	}
	return nil
}

// noWorker is why a task waits that no worker has looked at yet.
const noWorker = "no worker has been free for it yet"

// reason is why a task waits, as a clause for people: the same wherever it is shown. Empty for a task that does not wait.
func reason(rec store.Record) string {
	switch {
	case rec.State == store.Running:
		return rec.Why // it was claimed, and has not begun
	case rec.State != store.Waiting:
		return ""
	case rec.Blocked != (store.Blocked{}):
		return BlockedBy(rec.Blocked)
	case rec.Why != "":
		return rec.Why
	}
	return noWorker
}

// follows says of a task that nobody has looked at yet how many of its thread come first.
func (s *Status) follows(n int) {
	if s.Why == noWorker && n > 0 {
		s.Why = BlockedBy(store.Blocked{Place: n})
	}
}

// BlockedBy returns what refused a task its place.
func BlockedBy(b store.Blocked) string {
	switch {
	case b.Scope != "":
		return fmt.Sprintf("%d of %d runs busy %s; you are %s", b.Runs, b.Max, inScopeOf(b.Scope), ordinal(b.Place))
	case b.Place <= 1:
		return "what comes before it in its thread is at work"
	}
	return fmt.Sprintf("%d requests of its thread come first", b.Place)
}

// inScopeOf names a scope to people.
func inScopeOf(scope string) string {
	switch kind, name, _ := strings.Cut(scope, ":"); kind + ":" {
	case repoScope:
		return "in " + name
	case userScope:
		return "for whoever asked"
	}
	return "with the model account"
}

// ordinal is 1st, 2nd, 3rd and so on.
func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
