package desk

import (
	"context"
	"strings"
	"time"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
)

// Rebuild makes the next run of a repository set up a new environment on every worker, on behalf of the visitor. Runs
// that use the old one continue.
func (f *Fleet) Rebuild(ctx context.Context, repo string) (store.Rebuild, error) {
	repo = f.desk.policy.WithoutHost(repo)
	if err := people.VisitorOf(ctx).Operates(ctx, repo); err != nil {
		return store.Rebuild{}, err
	}
	if _, err := forge.ParseRepository(repo); err != nil {
		return store.Rebuild{}, &tasks.InputError{Sentence: err.Error() + "."}
	}
	if _, err := f.desk.policy.Allowed(repo); err != nil {
		return store.Rebuild{}, err
	}
	r := store.Rebuild{
		Repo: repo, By: people.PublicName(ctx), At: time.Now().UTC().Truncate(time.Microsecond),
	}
	return r, f.desk.store.Rebuilds.Save(ctx, strings.ToLower(repo), r)
}
