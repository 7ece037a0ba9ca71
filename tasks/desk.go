package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/store"
)

// ErrNotFound says that there is no such task, or no more.
var ErrNotFound = errors.New("no such task")

// ErrNotEnded says that a task cannot be tried again because it has not ended.
var ErrNotEnded = errors.New("the task has not ended")

// ErrNoQuestion is returned by [Desk.Submit] for a message that can only be an answer, if it answers no open question.
var ErrNoQuestion = errors.New("no open question")

// Repository is what the fleet may do in a repository.
type Repository struct {
	Trusted bool   // its own settings, hooks and servers for the CLI are used
	Base    string // branch to start from; empty: the default branch
	Profile agent.Profile
}

// Policy is what a task may ask for at most.
type Policy struct {
	Host string // of the forge: a repository name may begin with it, and is stored without it
	// Repository looks up what may be done in "owner/name"; false refuses it.
	Repository func(name string) (Repository, bool)
	Limit      time.Duration   // of a run
	Rules      []agent.Rule    // decide the tool calls of every run
	Redactor   *agent.Redactor // keeps the fleet's own secrets out of stored prompts; nil: none
	Choices    Choices         // of what a task may name
	Limits     Limits          // of what runs at once
	Budgets    Budgets         // of what it costs
	People     People          // who is who in the sources
}

// Desk is the only way in: everything that is asked of the fleet is asked here. Safe for concurrent use.
type Desk struct {
	store  *store.Store
	queue  *Queue
	policy Policy
	meter  DeskMeter
	log    *slog.Logger

	patience time.Duration // with workers that are asked something; tests shorten it
}

// NewDesk makes a desk at a store and a queue. A nil log is silence.
func NewDesk(s *store.Store, q *Queue, p Policy, log *slog.Logger) *Desk {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Desk{store: s, queue: q, policy: p, meter: unmetered{}, log: log, patience: offerWait}
}

// Metered is the same desk, whose meter is told what is submitted.
func (d *Desk) Metered(m DeskMeter) *Desk {
	metered := *d
	metered.meter = m
	return &metered
}

// Receipt says what became of a submitted task.
type Receipt struct {
	ID    string
	New   bool // false: the same task had been submitted before
	Class string

	Answered bool // the message answered a question of the thread's running task, whose ID this is; it did not become a task

	Position int  // of a new task: how many tasks of its thread are before it, a running one included
	Joins    bool // the live run of its thread is going to take it up; else it waits for its turn
}

// Submit stores a task and enqueues it. It is idempotent: the same ID again, at any time and from any process, is success and
// changes nothing. An *InputError says what the person has to change; any other error means that the task may not have been
// taken, and that the sender should try again.
//
// If t.Reply is set and the thread's running task waits for an answer, the message may be that answer instead of a task.
//
// It returns when ctx ends as far as the Redis client minds ctx, which a front door's has to: it must answer in time. What was under way may
// still get through; the same event then finds its task.
func (d *Desk) Submit(ctx context.Context, t Task) (Receipt, error) {
	receipt, err := d.submit(ctx, t)
	d.dropPictures(ctx, t, receipt, err)
	if err == nil {
		d.meter.Submitted(t, receipt)
	}
	return receipt, err
}

func (d *Desk) submit(ctx context.Context, t Task) (Receipt, error) {
	if t.Reply != nil && t.Reply.Only {
		return d.submitReply(ctx, t)
	}
	topic := topic(t) // what was asked for: the policy may have changed by the next time
	t, err := d.policy.apply(t)
	if err != nil {
		return Receipt{}, err
	}
	body, err := json.Marshal(t)
	if err != nil {
		return Receipt{}, fmt.Errorf("marshal task %s: %w", t.ID, err)
	}
	record := store.Record{ID: t.ID, Thread: t.Thread, Class: t.Class, Task: body, MergeKey: MergeKey(t), Scopes: t.scopes(), Topic: topic, At: t.NotBefore}
	if err := d.savePictures(ctx, t); err != nil {
		return Receipt{}, err
	}
	budgets := d.policy.Budgets.Daily()
	if t.Reply != nil {
		record.Reply = store.MayReply
	}
	rec, created, err := d.store.Submit(ctx, record, budgets...)
	if open, ok := errors.AsType[*store.OpenQuestion](err); ok {
		if receipt, err := d.reply(ctx, open.ID, t); err != nil || receipt.Answered {
			return receipt, err
		}
		record.Reply = store.NoReply
		rec, created, err = d.store.Submit(ctx, record, budgets...)
	}
	switch {
	case errors.Is(err, store.ErrSpent): // the message comes again after it was used as an answer
		return Receipt{ID: t.ID, Class: t.Class, Answered: true}, nil
	case errors.Is(err, store.ErrTooLarge):
		return Receipt{}, tooLong()
	case err != nil:
		if over, ok := errors.AsType[*store.OverBudget](err); ok {
			return Receipt{}, d.policy.Budgets.Refusal(over)
		}
		return Receipt{}, fmt.Errorf("submit task %s: %w", t.ID, err)
	}
	d.enqueueWaiting(ctx, rec)
	if created {
		d.log.Info("task submitted", "run", t.ID, "thread", rec.Thread, "source", t.Source)
	}
	return Receipt{ID: t.ID, New: created, Class: t.Class, Position: rec.Before, Joins: rec.Joins}, nil
}

// enqueueWaiting enqueues a submitted task. An older submission may have died between storing and enqueuing it, so a task that existed is
// enqueued as well. A failure is only logged: the task is stored, and the reconciler enqueues it. If Submit returned the error, the sender
// would send it again, and a person would get two tasks.
func (d *Desk) enqueueWaiting(ctx context.Context, rec store.Record) {
	if rec.State != store.Waiting {
		return
	}
	if err := d.queue.Enqueue(ctx, rec.ID, rec.Class, rec.Delivery, rec.At); err != nil {
		d.log.Warn("enqueue task", "run", rec.ID, "err", err)
	}
}

// apply holds a task to the policy.
func (p Policy) apply(t Task) (Task, error) {
	if err := t.check(); err != nil {
		return t, err
	}
	if err := p.Choices.check(t.Options); err != nil {
		return t, err
	}
	if t.Repo != "" {
		t.Repo = p.withoutHost(t.Repo)
		r, err := p.Allowed(t.Repo)
		if err != nil {
			return t, err
		}
		t.Profile = r.Narrow(t.Profile)
	}
	t.Prompt = p.Redactor.String(t.Prompt)
	if p.Limit > 0 && (t.Options.Limit <= 0 || t.Options.Limit > p.Limit) {
		t.Options.Limit = p.Limit
	}
	t.Options.MaxUSD = LowerLimit(t.Options.MaxUSD, p.Budgets.Task)
	return t, nil
}

// withoutHost returns a repository name without the forge's host, so that policy, limits and mirrors know each repository by one name.
func (p Policy) withoutHost(name string) string {
	r, err := forge.ParseRepository(name)
	if err != nil || !strings.EqualFold(r.Host, p.Host) {
		return name // the policy or the workspace refuses a name that is not valid
	}
	return r.Path
}

// Narrow returns the wanted profile, limited to what the repository allows.
func (r Repository) Narrow(wanted agent.Profile) agent.Profile {
	if r.Profile == agent.Read && wanted == agent.Write {
		return agent.Read
	}
	return wanted
}

// Allowed returns what may be done in a repository. Without a configured list, every repository is allowed and none is trusted.
func (p Policy) Allowed(name string) (Repository, error) {
	if p.Repository == nil {
		return Repository{}, nil
	}
	r, ok := p.Repository(name)
	if !ok {
		return r, &InputError{Sentence: fmt.Sprintf("Repository %s is not one errand works on. An operator can add it under repositories: in errand.yaml.", name)}
	}
	return r, nil
}

// Cancel asks that a task be stopped, on behalf of by. A task that waits ends at once, one that runs within seconds; for one that
// has ended nothing changes. With a task that was absorbed the run stops that it is in. The status is as it is then.
func (d *Desk) Cancel(ctx context.Context, id, by string) (Status, error) {
	if err := d.stop(ctx, id, by, causeUser); err != nil {
		return Status{}, err
	}
	return d.Status(ctx, id)
}

// Retry lets a task that has ended run again, as if for the first time but in the same conversation. ErrNotEnded otherwise.
func (d *Desk) Retry(ctx context.Context, id string) (Status, error) {
	rec, err := d.store.Retry(ctx, id)
	if errors.Is(err, store.ErrNotEnded) {
		return Status{}, fmt.Errorf("retry task %s: %w", id, ErrNotEnded)
	}
	if err != nil {
		return Status{}, d.notFound(id, err)
	}
	if err := d.queue.Enqueue(ctx, rec.ID, rec.Class, rec.Delivery, rec.At); err != nil {
		d.log.Warn("enqueue task", "run", id, "err", err) // it waits again, and the reconciler enqueues it
	}
	return d.Status(ctx, id)
}

// Logged is an event of a run as it is stored.
type Logged struct {
	ID    string // where to go on from
	Event agent.Event
	End   bool // the task has ended; Event is empty
}

// Follow gives a task's events after the one with that ID ("" for all) and then what comes, until the task has ended. It ends with
// an error when ctx does.
func (d *Desk) Follow(ctx context.Context, id, after string) iter.Seq2[Logged, error] {
	return func(yield func(Logged, error) bool) {
		for e, err := range d.store.Events.Follow(ctx, id, after) {
			l := Logged{ID: e.ID, End: e.End}
			switch {
			case err != nil:
				err = d.notFound(id, err)
			case !e.End:
				if json.Unmarshal(e.Data, &l.Event) != nil {
					l.Event = agent.Event{Kind: agent.Notice, Text: "Here is an event that this version of errand cannot read."}
				}
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

func (d *Desk) notFound(id string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	return fmt.Errorf("task %s: %w", id, err)
}

// DeskMeter is told what is submitted. It is called by many goroutines, and returns at once.
type DeskMeter interface {
	Submitted(t Task, r Receipt)
}

// unmetered is the meter of a desk without one.
type unmetered struct{}

func (unmetered) Submitted(Task, Receipt) {}
