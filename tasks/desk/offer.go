package desk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Outlook returns what a run with the widest profile would get in a repository. A worker of its pool reads the
// declaration of the base branch. If none can, the findings say so. Errors are as those of Desk.Offer.
func (f *Fleet) Outlook(ctx context.Context, name string) (capacity.Outlook, error) {
	name = f.desk.policy.WithoutHost(name)
	if name == "" {
		return capacity.Outlook{}, &tasks.InputError{Sentence: "Name a repository, such as owner/name."}
	}
	if err := people.VisitorOf(ctx).Operates(ctx, name); err != nil {
		return capacity.Outlook{}, err
	}
	repo, err := f.desk.policy.Allowed(name)
	if err != nil {
		return capacity.Outlook{}, err
	}
	seen, err := f.desk.store.Workers.List(ctx)
	if err != nil {
		return capacity.Outlook{}, err
	}
	o := capacity.Outlook{Repo: name, Findings: []store.Finding{}}
	o.Add("profile", string(repo.Narrow(agent.Write)))
	o.Add("pool", tasks.PoolName(repo.Pool))
	o.Add("workers alive", fmt.Sprint(len(capacity.InPool(seen, repo.Pool))))
	if why := capacity.WhyNoWorkerIn(seen, repo.Pool); why != "" {
		o.Miss(store.Fatal, why,
			"Tasks in the repository wait. What its base branch declares is unknown: workers read it.",
			"Start a worker with ERRAND_POOL="+tasks.PoolName(repo.Pool)+", or see enqueue doctor.")
		return o, nil
	}
	reply, err := f.desk.inquire(ctx, capacity.Where{Repo: name, Outlook: true})
	if err != nil {
		return capacity.Outlook{}, err
	}
	if reply.Outlook == nil {
		failed := agent.NewError(agent.ClassConfig, "the worker that was asked runs another release of errand")
		failed.Remedy = "Run the same release everywhere."
		return capacity.Outlook{}, failed
	}
	o.Facts, o.Findings = append(o.Facts, reply.Outlook.Facts...), append(o.Findings, reply.Outlook.Findings...)
	return o, nil
}

// ErrNoAnswer means that no worker answered in time.
var ErrNoAnswer = errors.New("no worker answered")

// offerWait bounds how long Offer waits for a worker.
const offerWait = 20 * time.Second

// maxPath is Linux' limit on a path, in bytes. Paths are passed to workers through Redis.
const maxPath = 4096

// Offer returns what people can ask for by name in a place. A worker queries its CLI, without calling the model; the
// answer is cached for a minute. An *InputError says that no task can work there, and a *CLIError why the CLI could
// not answer. It returns [ErrNoAnswer] if no worker that can run tasks answered in time.
func (d *Desk) Offer(ctx context.Context, where capacity.Where) (capacity.Offer, error) {
	reply, err := d.inquire(ctx, where)
	if err != nil {
		return capacity.Offer{}, err
	}
	if reply.Offer == nil {
		return capacity.Offer{}, errors.New("decode offer: the reply is empty")
	}
	return *reply.Offer, nil
}

// inquire asks a worker about a place.
func (d *Desk) inquire(ctx context.Context, where capacity.Where) (reply capacity.OfferReply, err error) {
	pool := ""
	switch {
	case where.Repo != "" && where.Dir != "":
		return reply, &tasks.InputError{Sentence: "Name either a repository or a directory, not both."}
	case len(where.Dir) > maxPath:
		why := fmt.Sprintf("The path of a directory can have at most %d bytes.", maxPath)
		return reply, &tasks.InputError{Sentence: why}
	case where.Repo != "":
		// Check this first, because a worker takes seconds to answer.
		allowed, err := d.policy.Allowed(where.Repo)
		if err != nil {
			return reply, err
		}
		pool = allowed.Pool
	}
	repo := d.policy.WithoutHost(where.Repo)
	if see := people.VisitorOf(ctx).May(ctx, policy.See, repo); !see.Allowed && (repo != "" || where.Dir != "") {
		return reply, &tasks.InputError{Sentence: "You may not see this repository or directory."}
	}
	question := format.JSON(where)
	ctx, cancel := context.WithTimeoutCause(ctx, d.patience, ErrNoAnswer)
	defer cancel()
	answer, err := d.store.Workers.Inquire(ctx, pool, "offer-"+format.Hash(string(question)), question)
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx) // the same error for every step that was too slow
	}
	if err != nil {
		return reply, fmt.Errorf("query offer: %w", err)
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return reply, fmt.Errorf("decode offer: %w", err)
	}
	if reply.Refused != "" {
		return reply, &tasks.InputError{Sentence: reply.Refused}
	}
	if reply.Failed != nil {
		return reply, reply.Failed
	}
	return reply, nil
}
