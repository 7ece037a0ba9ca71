package subject

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Gate collects facts about who requests something on GitHub. It is safe for concurrent use.
type Gate struct {
	Forge     Permissions
	Memory    Memory
	Bots      []string // logins of the bots that may request work
	ForkLabel string   // approves the head of a pull request from a fork
	Now       func() time.Time
}

// Permissions is what the gate asks of a forge.
type Permissions interface {
	// PermissionFor returns what an account may do in a repository. installation is that of the event, or 0.
	PermissionFor(ctx context.Context, repo string, installation int64, login string) (forge.Permission, error)
}

// MayRequest decides whether an account may have something done in a task's repository. After an error it may not.
func (g *Gate) MayRequest(ctx context.Context, r thread.Ref, login string) (policy.Verdict, error) {
	p, err := g.Forge.PermissionFor(ctx, r.Repo, r.Installation, login)
	missing := errors.Is(err, forge.ErrNotFound)
	if err != nil && !missing {
		return policy.Verdict{}, tasks.FromForge(err)
	}
	return policy.Decide(g.Account(login, false), policy.Request, policy.Object{
		Repos: []policy.Repo{{Name: r.Repo, Writes: p.CanWrite(), Missing: missing}},
	}, policy.Posture{}), nil
}

// Account is an account. errand itself is no listed bot, even if it is listed.
func (g *Gate) Account(login string, bot bool) policy.Subject {
	listed := strings.HasSuffix(login, "[bot]") && slices.ContainsFunc(g.Bots, func(bot string) bool {
		return strings.EqualFold(bot, login)
	})
	return policy.Subject{Name: login, Bot: bot || listed, Listed: listed}
}

// MayCommand decides whether an account may do what is for people, as far as that does not depend on its permission.
func (g *Gate) MayCommand(login string, bot bool) policy.Verdict {
	return policy.Decide(g.Account(login, bot), policy.Command, policy.Object{}, policy.Posture{})
}

// MustWrite refuses an account that may not have something done.
func (g *Gate) MustWrite(ctx context.Context, r thread.Ref, login string) error {
	v, err := g.MayRequest(ctx, r, login)
	if err == nil && !v.Allowed {
		err = fmt.Errorf("%w: %w", tasks.ErrRefused, thread.Refuse(v.Reason))
	}
	return err
}

// Approve records that a person approves this head of a fork. It returns an *tasks.InputError if they may not.
func (g *Gate) Approve(ctx context.Context, r thread.Ref, head, by string) error {
	if err := g.MustWrite(ctx, r, by); err != nil {
		return err
	}
	return g.Memory.ChangeState(ctx, r, func(p *State) error {
		p.Approved, p.ApprovedBy = head, by
		return nil
	})
}

// CheckFork refuses runs on a pull request from a fork without approval, runs that do more than read, and runs beyond
// the daily limit of its author. Every brief calls it with the present state of the pull request.
func (g *Gate) CheckFork(ctx context.Context, t tasks.Task, o Origin, pr *github.PullRequest) error {
	if !hub.IsFork(pr) {
		return nil
	}
	v, err := g.MayRun(ctx, t, o)
	if err != nil {
		return err
	}
	if !v.Allowed {
		return thread.Refuse(v.Reason)
	}
	if o.ApprovedBy != "" { // also if another person has approved, because the run counts for the author
		if err := g.Approve(ctx, o.Ref, o.Head, o.ApprovedBy); err != nil {
			return err
		}
	}
	return g.countForkRun(ctx, t, pr.GetUser().GetLogin())
}

// MayRun decides whether a task on a fork may run. If it is an approval itself, that is checked before the run.
func (g *Gate) MayRun(ctx context.Context, t tasks.Task, o Origin) (policy.Verdict, error) {
	p, err := g.Memory.State(ctx, o.Ref)
	what := policy.Object{Writes: t.Profile != agent.Untrusted}
	what.Approved = o.ApprovedBy != "" || p.Approved != "" && p.Approved == o.Head
	return policy.Decide(policy.Subject{}, policy.Fork, what, policy.Posture{Label: g.ForkLabel}), err
}

// forkRuns is how many runs a day the forks of one author get.
const forkRuns = 5

// countForkRun counts a run against its author's daily limit (UTC), which covers all repositories: an author who was
// approved once must not be able to spend without limit. A task that is briefed again is counted once.
func (g *Gate) countForkRun(ctx context.Context, t tasks.Task, author string) error {
	name := "github/strangers/" + strings.ToLower(author) + "/" + g.Now().UTC().Format(time.DateOnly)
	err := g.Memory.Store.ChangeMemo(ctx, name, func(old json.RawMessage) (json.RawMessage, error) {
		var taken []string // IDs of tasks
		if old != nil {
			if err := json.Unmarshal(old, &taken); err != nil { // do not start again with an empty list
				return nil, fmt.Errorf("read: %w", err)
			}
		}
		if slices.Contains(taken, t.ID) {
			return nil, nil
		}
		if len(taken) >= forkRuns {
			return nil, &tasks.InputError{Sentence: fmt.Sprintf(
				"%s has had %d reviews of pull requests from forks today, the daily limit for one author.",
				author, len(taken))}
		}
		return json.Marshal(append(taken, t.ID))
	})
	if err != nil {
		return fmt.Errorf("count run on fork of %s: %w", author, err)
	}
	return nil
}

// Comments by other bots are ignored, except for bots that an operator has listed. Their requests count as automatic
// work: only a few are done until a person writes, so that two bots cannot answer each other without end. Listed bots
// can request work and nothing else: they cannot approve a fork, answer a question, or stop or resume anything.

// CountBotRequest counts a bot's request as automatic work. It returns an *tasks.InputError if the limit is reached.
func (g *Gate) CountBotRequest(ctx context.Context, t tasks.Task, o Origin) error {
	return g.Memory.Once(ctx, o.Ref, "bot "+o.Asked.Identity(), t.ID)
}

// MayNot reports whether GitHub says that an account may not request anything. The brief checks again before the run.
func (g *Gate) MayNot(ctx context.Context, r thread.Ref, login string) bool {
	v, err := g.MayRequest(ctx, r, login)
	return err == nil && !v.Allowed
}

// The code of a pull request from a fork is not run until a person with write access approves it, by a comment /review
// or by a label. The approval is for one commit; later pushes need another one. An approved run has the profile
// agent.Untrusted, and one author gets only a few such runs a day.

// ProfileOf returns the profile for a pull request's code, at most the one that was requested.
func ProfileOf(pr *github.PullRequest, asked agent.Profile) agent.Profile {
	if hub.IsFork(pr) {
		return agent.Untrusted
	}
	return asked
}

// MovedSince reports whether the head may have changed since a person wrote something at that time. GitHub gives times
// in whole seconds, so a push in the same second counts. Only the head's repository has the time of the last push; if
// it was deleted, it gets no pushes.
func MovedSince(pr *github.PullRequest, at time.Time) bool {
	pushed := pr.GetHead().GetRepo().GetPushedAt().Time
	return !pushed.IsZero() && !pushed.Truncate(time.Second).Before(at.Truncate(time.Second))
}
