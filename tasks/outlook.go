package tasks

import (
	"context"
	"fmt"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
)

// Outlook says what a run in a repository would get, and what is missing.
type Outlook struct {
	Repo     string          `json:"repo"`
	Facts    []Fact          `json:"facts"`
	Findings []store.Finding `json:"findings"`
}

// Fact is a thing that a run would get.
type Fact struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// Add adds a fact.
func (o *Outlook) Add(name string, values ...string) {
	o.Facts = append(o.Facts, Fact{name, append([]string{}, values...)})
}

// Miss adds a finding about what is missing.
func (o *Outlook) Miss(severity store.Severity, what, why, remedy string) {
	o.Findings = append(o.Findings, store.Finding{Severity: severity, What: what, Why: why, Remedy: remedy})
}

// Outlook returns what a run with the widest profile would get in a repository. A worker of its pool reads the
// declaration of the base branch. If none can, the findings say so. Errors are as those of Desk.Offer.
func (f *Fleet) Outlook(ctx context.Context, name string) (Outlook, error) {
	name = f.desk.policy.withoutHost(name)
	if name == "" {
		return Outlook{}, &InputError{Sentence: "Name a repository, such as owner/name."}
	}
	if err := VisitorOf(ctx).Operates(ctx, name); err != nil {
		return Outlook{}, err
	}
	repo, err := f.desk.policy.Allowed(name)
	if err != nil {
		return Outlook{}, err
	}
	seen, err := f.desk.store.Workers.List(ctx)
	if err != nil {
		return Outlook{}, err
	}
	o := Outlook{Repo: name, Findings: []store.Finding{}}
	o.Add("profile", string(repo.Narrow(agent.Write)))
	o.Add("pool", PoolName(repo.Pool))
	o.Add("workers alive", fmt.Sprint(len(InPool(seen, repo.Pool))))
	if why := WhyNoWorkerIn(seen, repo.Pool); why != "" {
		o.Miss(store.Fatal, why,
			"Tasks in the repository wait. What its base branch declares is unknown: workers read it.",
			"Start a worker with ERRAND_POOL="+PoolName(repo.Pool)+", or see enqueue doctor.")
		return o, nil
	}
	reply, err := inquire(ctx, f.desk, Where{Repo: name, Outlook: true})
	if err != nil {
		return Outlook{}, err
	}
	if reply.Outlook == nil {
		failed := agent.NewError(agent.ClassConfig, "the worker that was asked runs another release of errand")
		failed.Remedy = "Run the same release everywhere."
		return Outlook{}, failed
	}
	o.Facts, o.Findings = append(o.Facts, reply.Outlook.Facts...), append(o.Findings, reply.Outlook.Findings...)
	return o, nil
}
