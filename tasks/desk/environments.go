package desk

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Environment is an environment that a host keeps for the runs of a repository.
type Environment struct {
	store.Environment
	Host    string         `json:"host"`
	Worker  string         `json:"worker"`            // that reported it; workers of one host may share environments
	Rebuild *store.Rebuild `json:"rebuild,omitempty"` // why no further run uses it; nil: nothing
}

// Took returns how long the set-up took.
func (e Environment) Took() time.Duration { return time.Duration(e.Seconds * float64(time.Second)) }

// Environments lists the environments that the live workers keep for a repository, by repository and host, the last
// used first. Without a name it lists those of all repositories that the visitor sees.
func (f *Fleet) Environments(ctx context.Context, repo string) ([]Environment, error) {
	repo = f.desk.policy.WithoutHost(repo)
	live, err := f.desk.store.Workers.List(ctx)
	if err != nil {
		return nil, err
	}
	rebuilds, err := f.desk.store.Environments.Rebuilds(ctx)
	if err != nil {
		return nil, err
	}
	all, visitor := []Environment{}, people.VisitorOf(ctx)
	for _, w := range live {
		for _, e := range w.Environments {
			if repo != "" && !strings.EqualFold(e.Repo, repo) || !visitor.May(ctx, policy.See, e.Repo).Allowed {
				continue
			}
			one := Environment{Environment: e, Host: w.Host, Worker: w.ID}
			if r := rebuilds.Of(e.Repo); r.Outdated(e.ID) {
				one.Rebuild = &r
			}
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b Environment) int {
		return cmp.Or(cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Host, b.Host), cmp.Compare(a.ID, b.ID),
			b.Used.Compare(a.Used))
	})
	all = slices.CompactFunc(all, func(a, b Environment) bool { return a.Host == b.Host && a.ID == b.ID })
	slices.SortStableFunc(all, func(a, b Environment) int {
		return cmp.Or(cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Host, b.Host), b.Used.Compare(a.Used))
	})
	return all, nil
}

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
	return r, f.desk.store.Environments.Rebuild(ctx, r)
}
