// Package rights has what the operator permits, and finds out what people may do: it collects the facts about their
// accounts, the repositories and the conversation, from the store and the forge, and package policy decides. The desk
// asks it about requests, and a worker just before a run. A [Policy] is safe for concurrent use.
package rights

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/scope"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Repository says what the fleet may do in a repository.
type Repository struct {
	Trusted bool   // use what executes in its configuration of the CLI
	Base    string // branch to start from; empty: the default branch
	Profile agent.Profile
	Open    bool   // people whose account on the forge is unknown may ask errand to read it
	Pool    string // of workers that run its tasks; empty: the default one

	Instructions string // the operator's for the agents of its runs

	Environment environment.Declaration // the operator's, which wins over the repository's own
}

// Policy limits what a task may ask for.
type Policy struct {
	Host string // of the forge: a repository name may begin with it, and is stored without it
	// Repository looks up the repository "owner/name". It returns false if no task may use it.
	Repository func(name string) (Repository, bool)
	// Listed are the repositories that errand works on; empty: it works on all that it can reach.
	Listed   []string
	Limit    time.Duration          // on the duration of a run
	Rules    []agent.Rule           // for the tool calls of every run
	Redactor *agent.Redactor        // keeps the fleet's own secrets out of stored prompts; nil: none
	Choices  Choices                // the models and efforts that a task may name
	Limits   Limits                 // on concurrent tasks
	Budgets  Budgets                // on the cost of tasks
	People   people.People          // maps accounts to people
	Rights   *ForgeRights           // of people on the forge; nil: no limits
	Fleet    policy.Wish            // the operator's for all runs
	Plugins  []agent.Instructions   // for all runs
	Channels map[string]policy.Wish // for the runs that are asked for in a channel, by its ID
	Pools    []string               // names of the pools that repositories have
	Egress   agent.Egress           // of runs, unless the operator declares one for their repository
}

// Apply checks a task against the policy and returns it with the policy's limits applied.
func (p Policy) Apply(t tasks.Task) (tasks.Task, error) {
	if err := cmp.Or(t.Check(), p.Choices.check(t.Options), checkDirectory(t)); err != nil {
		return t, err
	}
	if t.Repo != "" {
		t.Repo = p.WithoutHost(t.Repo)
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

// WithoutHost returns a repository name without the forge's host, so that policy, limits and mirrors know each
// repository by one name.
func (p Policy) WithoutHost(name string) string {
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
			&tasks.InputError{Sentence: fmt.Sprintf("Repository %s is not one errand works on. An operator can add it "+
				"under repositories: in errand.yaml.", name)}
	}
	return r, nil
}

// PoolOf returns the pool that a task belongs to according to its repository. A task whose repository is no longer
// allowed stays where it is.
func (p Policy) PoolOf(rec store.Record) string {
	name := scope.Name(rec.Scopes, scope.Repository)
	if name == "" {
		return ""
	}
	repo, err := p.Allowed(name)
	if err != nil {
		return rec.Pool
	}
	return repo.Pool
}
