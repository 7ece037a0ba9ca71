package desk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/rights"
)

// Taken is what a person needs to continue a task on their machine. Git brings them the commits.
type Taken struct {
	Session string        `json:"session,omitempty"` // ID of the CLI's session; empty: none is stored
	Data    []byte        `json:"data,omitempty"`    // of the session, as the package transcript reads it
	Works   []TakenBranch `json:"works"`             // one for each repository of the task, the main one first
}

// TakenBranch says where the work in a repository is.
type TakenBranch struct {
	Repo   string `json:"repo"`
	Branch string `json:"branch,omitempty"` // empty: nothing was published
}

const (
	takeFor   = time.Minute // ending a run takes up to 15 s, and publishing 20 s
	takeEvery = 100 * time.Millisecond
)

// Take lets by continue a task on their machine. It stops a run, which publishes its work, and waits for that. An
// *InputError says why the task cannot be taken over now; then it continues, or its run ends and Take can be called
// again.
func (d *Desk) Take(ctx context.Context, id, by string) (_ Taken, err error) {
	defer func() { d.audit(ctx, "take", id, err) }()
	rec, err := d.store.Get(ctx, id)
	if err == nil && rec.Into != "" {
		rec, err = d.store.Get(ctx, rec.Into)
	}
	if err != nil {
		return Taken{}, d.notFound(id, err)
	}
	t, err := record.Task(rec)
	if err != nil {
		return Taken{}, err
	}
	if err := d.mayTake(ctx, t); err != nil {
		return Taken{}, err
	}
	if t.Repo == "" {
		return Taken{}, &tasks.InputError{Sentence: "The task has no repository, which would bring you its work."}
	}
	if rec, err = d.endRun(ctx, rec, by); err != nil {
		return Taken{}, err
	}
	if err := d.mayTake(ctx, t); err != nil { // the conversation may have been about more meanwhile
		return Taken{}, err
	}
	return d.taken(ctx, t, rec)
}

// mayTake checks that the visitor of a context may take a task over.
func (d *Desk) mayTake(ctx context.Context, t tasks.Task) error {
	v := people.VisitorOf(ctx)
	if err := d.policy.People.Permit(ctx, t, policy.Take); err != nil || v.Has(policy.Take) {
		return err
	}
	about, err := rights.ConversationOf(ctx, d.store, t.Thread)
	if err != nil {
		return err
	}
	may := v.Decide(policy.Take, policy.Object{
		Own: d.policy.People.Asked(v, d.policy.People.Account(t)), Repos: v.Repos(ctx, t.Places()...),
		Past: v.Repos(ctx, about.Repos...), Forgotten: about.Repos == nil,
	})
	if !may.Allowed {
		return &people.RoleError{Sentence: may.Reason}
	}
	return nil
}

// endRun stops the run of a task, unless the task has ended, and returns its record after that.
func (d *Desk) endRun(ctx context.Context, rec store.Record, by string) (store.Record, error) {
	open, err := d.store.Threads.OpenTasks(ctx, rec.Thread)
	if err != nil {
		return rec, err
	}
	for _, other := range open {
		if other.ID != rec.ID {
			return rec, input("Task %s of the same thread runs or waits. Cancel it first, or take that one over.",
				display.TaskID(other.ID))
		}
	}
	running := rec.State == store.Running
	if running {
		if _, err := d.store.Cancel(ctx, rec.ID, by, record.CauseTaken); err != nil {
			return rec, d.notFound(rec.ID, err)
		}
	}
	for until := time.Now().Add(takeFor); rec.State == store.Running; {
		if time.Now().After(until) {
			return rec, input("The run is still being ended. Take it over again in a minute.")
		}
		select {
		case <-ctx.Done():
			return rec, ctx.Err()
		case <-time.After(takeEvery):
		}
		if rec, err = d.store.Get(ctx, rec.ID); err != nil {
			return rec, d.notFound(rec.ID, err)
		}
	}
	switch e, _ := record.Ending(rec); {
	case e == nil:
		return rec, input("The task waits: %s. Take it over when it runs, or cancel it.", record.Why(rec))
	case running && e.Kind == tasks.Cancelled:
		return rec, input("The task was stopped, but not handed over: its worker is of an earlier release. Its work " +
			"is kept. Ask again in its thread to continue.")
	}
	return rec, nil
}

func input(format string, args ...any) error {
	return &tasks.InputError{Sentence: fmt.Sprintf(format, args...)}
}

// taken returns what a person needs to continue a task that has ended.
func (d *Desk) taken(ctx context.Context, t tasks.Task, rec store.Record) (Taken, error) {
	var all Taken
	for _, repo := range t.Repositories() {
		all.Works = append(all.Works, TakenBranch{Repo: repo})
	}
	past, err := d.store.Threads.LatestTasks(ctx, t.Thread, historyChecked)
	if err != nil {
		return all, err
	}
	slices.Reverse(past)
	for i, one := range append([]store.Record{rec}, past...) {
		e, err := record.Ending(one)
		if e == nil || err != nil {
			continue
		}
		for _, p := range e.Publications() {
			if i == 0 && p.Commit == "" && p.Problem != "" {
				return all, input("%s", p.Problem)
			}
			for n, work := range all.Works {
				if work.Branch == "" && strings.EqualFold(work.Repo, p.Repo) {
					all.Works[n].Branch = p.Branch
				}
			}
		}
	}
	ses, err := d.store.Threads.Session(ctx, t.Thread)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) || err == nil && len(ses.Data) == 0 {
		return all, nil
	}
	if err != nil {
		return all, err
	}
	all.Session = ses.ID
	all.Data, err = agent.Session{ID: ses.ID, Data: ses.Data}.Portable(d.policy.Redactor)
	return all, err
}
