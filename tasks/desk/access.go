package desk

import (
	"context"
	"errors"
	"slices"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/scope"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/rights"
)

// Permits reports whether the desk lets the visitor of a context do something with a task.
func (d *Desk) Permits(ctx context.Context, t tasks.Task, a policy.Action) bool {
	return d.policy.People.Permit(ctx, t, a) == nil
}

// may is permit for a task that has not been read. It reads the task only for a visitor who is restricted.
func (d *Desk) may(ctx context.Context, id string, a policy.Action) error {
	if people.VisitorOf(ctx).Has(a) {
		return nil
	}
	rec, err := d.store.Get(ctx, id)
	if err != nil {
		return d.notFound(id, err)
	}
	return d.policy.People.Permit(ctx, d.status(rec).Task, a)
}

// visible drops the tasks that the visitor of a context may not see.
func (d *Desk) visible(ctx context.Context, records []store.Record) []store.Record {
	if sees := d.policy.People.Visible(ctx); sees != nil {
		records = slices.DeleteFunc(records, func(r store.Record) bool { return !sees(r.Scopes) })
	}
	return records
}

// permitNew checks that the visitor of a context may start a task.
func (d *Desk) permitNew(ctx context.Context, t tasks.Task) error {
	v := people.VisitorOf(ctx)
	if v.Has(policy.Start) {
		return nil
	}
	in := func(repos []string) []policy.Repo {
		var names []string
		for _, repo := range repos {
			names = append(names, d.policy.WithoutHost(repo))
		}
		return v.Repos(ctx, names...)
	}
	thread, err := d.Thread(ctx, t.Thread)
	if err != nil && !errors.Is(err, tasks.ErrNotFound) {
		return err
	}
	past, err := d.store.Threads.LatestTasks(ctx, t.Thread, historyChecked)
	if err != nil {
		return err
	}
	about, err := rights.ConversationOf(ctx, d.store, t.Thread) // tasks are not kept as long
	if err != nil {
		return err
	}
	all, known := len(past), d.visible(ctx, past)
	repos := append(about.Repos, tasks.Task{Repo: thread.Repo, Also: thread.Also}.Repositories()...)
	may := v.Decide(policy.Start, policy.Object{
		Repos: in(t.Places()), Directory: t.Dir != "",
		Past: in(repos), Forgotten: about.Repos == nil, Unseen: len(known) < all,
		Own: slices.ContainsFunc(known, func(r store.Record) bool {
			return d.policy.People.Asked(v, scope.Name(r.Scopes, scope.User))
		}),
	})
	if !may.Allowed {
		return &tasks.InputError{Sentence: may.Reason}
	}
	return nil
}

// historyChecked is how many tasks of a conversation a visitor must be allowed to see to continue it: as many as the
// store keeps.
const historyChecked = 200

// PermitNow checks that the asker may let errand read the task's repository and post the answer where they asked.
func (d *Desk) PermitNow(ctx context.Context, t tasks.Task) error {
	_, _, err := d.policy.Permit(ctx, d.store, t, true)
	return err
}

// PermitReady checks that a person may mark a pull request as ready, whose task they control if own is set. An
// *InputError says why they may not.
func (d *Desk) PermitReady(ctx context.Context, by tasks.Asker, own bool, repo string) error {
	return d.policy.PermitReady(ctx, d.store, by, own, repo)
}
