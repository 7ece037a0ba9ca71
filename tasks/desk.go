package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/hibiken/asynq"
)

var (
	// ErrNotFound means that the task does not exist or has expired.
	ErrNotFound = errors.New("no such task")
	// ErrNotEnded means that a task cannot be retried because it has not ended.
	ErrNotEnded = errors.New("the task has not ended")
	// ErrNoQuestion is returned by [Desk.Submit] if a message that can only be an answer answers no open question.
	ErrNoQuestion = errors.New("no open question")
)

// Repository says what the fleet may do in a repository.
type Repository struct {
	Trusted bool   // use the repository's own settings, hooks and servers for the CLI
	Base    string // branch to start from; empty: the default branch
	Profile agent.Profile
	Open    bool   // people whose account on the forge is unknown may ask errand to read it
	Pool    string // of workers that run its tasks; empty: the default one

	Environment environment.Declaration // the operator's, which wins over the repository's own
}

// Policy limits what a task may ask for.
type Policy struct {
	Host string // of the forge: a repository name may begin with it, and is stored without it
	// Repository looks up the repository "owner/name". It returns false if no task may use it.
	Repository func(name string) (Repository, bool)
	// Listed are the repositories that errand works on; empty: it works on all that it can reach.
	Listed   []string
	Limit    time.Duration   // on the duration of a run
	Rules    []agent.Rule    // for the tool calls of every run
	Redactor *agent.Redactor // keeps the fleet's own secrets out of stored prompts; nil: none
	Choices  Choices         // the models and efforts that a task may name
	Limits   Limits          // on concurrent tasks
	Budgets  Budgets         // on the cost of tasks
	People   People          // maps accounts to people
	Rights   *Rights         // of people on the forge; nil: no limits
	Pools    []string        // names of the pools that repositories have
	Egress   agent.Egress    // of runs, unless the operator declares one for their repository
}

// Desk is the only way in: sources, the console and the command line make every request to the fleet through it. It
// is safe for concurrent use.
type Desk struct {
	*trail

	store     *store.Store
	queue     *Queue
	policy    Policy
	submitted func(Task, Receipt) // see Metered
	log       *slog.Logger

	patience time.Duration // how long Offer waits for a worker; tests shorten it
}

// NewDesk returns a desk for a store and a queue. If log is nil, nothing is logged.
func NewDesk(s *store.Store, q *Queue, p Policy, log *slog.Logger) *Desk {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Desk{
		trail: &trail{s.Audit, p.People, log}, store: s, queue: q, policy: p, submitted: func(Task, Receipt) {},
		log: log, patience: offerWait,
	}
}

// Metered returns a copy of the desk that reports each submitted task, for its metrics. It calls submitted from many
// goroutines; submitted must not block.
func (d *Desk) Metered(submitted func(Task, Receipt)) *Desk {
	metered := *d
	metered.submitted = submitted
	return &metered
}

// Receipt describes the result of [Desk.Submit].
type Receipt struct {
	ID  string
	New bool // false if the same task was submitted before

	Answered bool // the message answered a question of the running task ID and did not become a task

	Position int  // of a new task: how many tasks of its thread come first, a running one included
	Joins    bool // the live run of its thread will absorb it; otherwise it waits its turn
}

// Submit stores a task and enqueues it. It is idempotent: submitting the same ID again, at any time and from any
// process, succeeds and changes nothing. An *InputError says what the person has to change. After any other error the
// task may not have been stored, and the sender should try again.
//
// If t.Reply is set and the thread's running task waits for an answer, the message may become that answer instead of
// a task.
//
// Submit returns soon after ctx ends, so that a front door can answer in time. A request to Redis that was under way
// may still succeed; when the same event arrives again, Submit finds the task.
func (d *Desk) Submit(ctx context.Context, t Task) (Receipt, error) {
	receipt, err := d.submit(ctx, t)
	d.dropPictures(ctx, t, receipt, err)
	if err == nil {
		d.submitted(t, receipt)
	}
	return receipt, err
}

func (d *Desk) submit(ctx context.Context, t Task) (Receipt, error) {
	var err error
	if t.Login, err = loginOf(ctx, d, t); err != nil {
		return Receipt{}, err
	}
	t.Partial = VisitorOf(ctx).Partial()
	record := store.Record{ID: t.ID, Thread: t.Thread, Reply: store.OnlyReply}
	only := t.Reply != nil && t.Reply.Only
	var budgets []store.Budget
	if !only {
		err := d.permitNew(ctx, t)
		if err != nil {
			return Receipt{}, err
		}
		if t, record, err = d.record(t); err != nil {
			return Receipt{}, err
		}
		if err := d.savePictures(ctx, t); err != nil {
			return Receipt{}, err
		}
		budgets = d.policy.Budgets.Daily()
	}
	rec, created, err := d.store.Submit(ctx, record, budgets...)
	if open, ok := errors.AsType[*store.OpenQuestion](err); ok {
		if receipt, err := d.reply(ctx, open.ID, t); err != nil || receipt.Answered {
			return receipt, err
		}
		if only {
			return Receipt{}, ErrNoQuestion
		}
		record.Reply = store.NoReply
		rec, created, err = d.store.Submit(ctx, record, budgets...)
	}
	switch {
	case errors.Is(err, store.ErrSpent): // the message was used as an answer before and is redelivered
		return Receipt{ID: t.ID, Answered: true}, nil
	case errors.Is(err, store.ErrNoQuestion):
		return Receipt{}, ErrNoQuestion
	case errors.Is(err, store.ErrTooLarge):
		return Receipt{}, tooLong()
	case err != nil:
		if over, ok := errors.AsType[*store.OverBudget](err); ok {
			return Receipt{}, d.policy.Budgets.Refusal(over)
		}
		return Receipt{}, fmt.Errorf("submit task %s: %w", t.ID, err)
	}
	if created {
		if !rec.At.After(time.Now()) && rec.Blocked == (store.Blocked{}) {
			d.enqueue(ctx, rec)
		}
		d.log.Info("task submitted", "run", t.ID, "thread", rec.Thread, "source", t.Source)
	}
	return Receipt{ID: t.ID, New: created, Position: rec.Before, Joins: rec.Joins}, nil
}

// enqueue enqueues a task that waits. If it fails, the leader does it a little later.
func (d *Desk) enqueue(ctx context.Context, rec store.Record) {
	err := d.queue.Enqueue(ctx, rec.ID, rec.Queue(), rec.Delivery)
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		d.log.Warn("enqueue task", "run", rec.ID, "err", err)
	}
}

// record applies the policy to a task, and returns it with its record.
func (d *Desk) record(t Task) (Task, store.Record, error) {
	topic := topic(t) // before the policy is applied, because the policy may have changed by the next task
	t, err := d.policy.Apply(t)
	if err != nil {
		return t, store.Record{}, err
	}
	body, err := json.Marshal(t)
	if err != nil {
		return t, store.Record{}, fmt.Errorf("marshal task %s: %w", t.ID, err)
	}
	rec := store.Record{
		ID: t.ID, Thread: t.Thread, Class: t.Class, Task: body, MergeKey: MergeKey(t),
		Scopes: d.policy.People.scopes(t), Topic: topic, At: t.NotBefore,
	}
	rec.Pool = d.policy.PoolOf(rec)
	if t.Reply != nil {
		rec.Reply = store.MayReply
	}
	return t, rec, nil
}

// Apply checks a task against the policy and returns it with the policy's limits applied.
func (p Policy) Apply(t Task) (Task, error) {
	if err := cmp.Or(t.check(), p.Choices.check(t.Options)); err != nil {
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
	t, err := p.withFurther(t)
	if err != nil {
		return t, err
	}
	t.Prompt = p.Redactor.String(t.Prompt)
	if p.Limit > 0 && (t.Options.Limit <= 0 || t.Options.Limit > p.Limit) {
		t.Options.Limit = p.Limit
	}
	t.Options.MaxUSD = LowerLimit(t.Options.MaxUSD, p.Budgets.Task)
	return t, nil
}

// withoutHost returns a repository name without the forge's host, so that policy, limits and mirrors know each
// repository by one name.
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

// Allowed returns what may be done in a repository. Without a configured list, every repository is allowed and none is
// trusted.
func (p Policy) Allowed(name string) (Repository, error) {
	if p.Repository == nil {
		return Repository{}, nil
	}
	r, ok := p.Repository(name)
	if !ok {
		return r,
			&InputError{Sentence: fmt.Sprintf("Repository %s is not one errand works on. An operator can add it "+
				"under repositories: in errand.yaml.", name)}
	}
	return r, nil
}

// Cancel stops a task on behalf of by, and returns its new status. A waiting task ends at once, a running one within
// seconds, and a task that has ended does not change. If the task was absorbed by a run, the whole run stops.
func (d *Desk) Cancel(ctx context.Context, id, by string) (_ Status, err error) {
	defer func() { d.audit(ctx, "stop", id, err) }()
	if err := d.may(ctx, id, policy.Stop); err != nil {
		return Status{}, err
	}
	if err := d.stop(ctx, id, by, causeUser); err != nil {
		return Status{}, err
	}
	return d.Status(ctx, id)
}

// Retry runs a task that has ended again, with fresh attempts, in the same conversation and with the rights of who
// retries it. It returns ErrNotEnded if the task has not ended, and an *InputError while the answer that absorbed tasks
// share with it is not posted.
func (d *Desk) Retry(ctx context.Context, id string) (_ Status, err error) {
	defer func() { d.audit(ctx, "retry", id, err) }()
	if err := d.may(ctx, id, policy.Operate); err != nil {
		return Status{}, err
	}
	rec, err := d.store.Get(ctx, id)
	if err != nil {
		return Status{}, d.notFound(id, err)
	}
	st := d.status(rec)
	if err := d.policy.Budgets.permitRetry(st.Task, rec.Cost, st.Ending); err != nil {
		return Status{}, err
	}
	var by json.RawMessage
	if asker := askerIn(ctx); asker != (Asker{}) {
		by = format.JSON(asker)
	}
	rec, err = d.store.Retry(ctx, id, by)
	if errors.Is(err, store.ErrNotEnded) {
		return Status{}, fmt.Errorf("retry task %s: %w", id, ErrNotEnded)
	}
	if errors.Is(err, store.ErrUnposted) {
		const why = "The answer to this and later messages is still being posted. Retry it after that, or ask again."
		return Status{}, &InputError{Sentence: why}
	}
	if err != nil {
		return Status{}, d.notFound(id, err)
	}
	d.enqueue(ctx, rec)
	return d.Status(ctx, id)
}

// Logged is a stored event of a run.
type Logged struct {
	ID    string // pass it to Follow to continue after this event
	Event agent.Event
	End   bool // the task has ended; Event is empty
}

// Follow yields a task's events after the one with the ID after ("" for all), and then new ones until the task has
// ended. If ctx ends first, it yields an error.
func (d *Desk) Follow(ctx context.Context, id, after string) iter.Seq2[Logged, error] {
	return func(yield func(Logged, error) bool) {
		if err := d.may(ctx, id, policy.See); err != nil {
			yield(Logged{}, err)
			return
		}
		for e, err := range d.store.Events.Follow(ctx, id, after) {
			l := Logged{ID: e.ID, End: e.End}
			switch {
			case err != nil:
				err = d.notFound(id, err)
			case !e.End:
				if json.Unmarshal(e.Data, &l.Event) != nil {
					l.Event = agent.Event{
						Kind: agent.Notice, Text: "This version of errand cannot read an event that is stored here.",
					}
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
