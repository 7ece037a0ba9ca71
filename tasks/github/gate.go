package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
)

// gate decides who may request what. It is safe for concurrent use.
type gate struct {
	api       thread.Client
	memory    memory
	pacer     intake.Pacer
	bots      []string // see Config.Bots
	forkLabel string
	forkRuns  int
	now       func() time.Time
}

// permission returns the permission of an account in a task's repository. An account that GitHub does not know has
// none, except for a bot that the operator has listed. After an error the permission is none.
func (g *gate) permission(ctx context.Context, r thread.Ref, login string) (forge.Permission, error) {
	p, err := g.api.Forge.PermissionFor(ctx, r.Repo, r.Installation, login)
	if errors.Is(err, forge.ErrNotFound) {
		if g.isListedBot(login) {
			return forge.PermissionWrite, nil
		}
		return forge.PermissionNone, nil
	}
	return p, tasks.FromForge(err)
}

// mustWrite refuses an account that may not push.
func (g *gate) mustWrite(ctx context.Context, r thread.Ref, login string) error {
	p, err := g.permission(ctx, r, login)
	if err == nil && !p.CanWrite() {
		err = fmt.Errorf("%w: %w", tasks.ErrRefused,
			thread.Refuse(login+" has no write access to "+r.Repo+"."))
	}
	return err
}

// The code of a pull request from a fork is not run until a person with write access approves it, by a comment /review
// or by a label. The approval is for one commit; later pushes need another one. An approved run has the profile
// agent.Untrusted, and one author gets only a few such runs a day.

// profileOf returns the profile for a pull request's code, at most the one that was requested.
func profileOf(pr *github.PullRequest, asked agent.Profile) agent.Profile {
	if hub.IsFork(pr) {
		return agent.Untrusted
	}
	return asked
}

// movedSince reports whether the head may have changed since a person wrote something at that time. GitHub gives times
// in whole seconds, so a push in the same second counts. Only the head's repository has the time of the last push; if
// it was deleted, it gets no pushes.
func movedSince(pr *github.PullRequest, at time.Time) bool {
	pushed := pr.GetHead().GetRepo().GetPushedAt().Time
	return !pushed.IsZero() && !pushed.Truncate(time.Second).Before(at.Truncate(time.Second))
}

// approve records that a person approves this head of a fork. It returns an *tasks.InputError if they may not.
func (g *gate) approve(ctx context.Context, r thread.Ref, head, by string) error {
	if err := g.mustWrite(ctx, r, by); err != nil {
		return err
	}
	return g.memory.changeState(ctx, r, func(p *prState) error {
		p.Approved, p.ApprovedBy = head, by
		return nil
	})
}

// approved reports whether a person has approved this head.
func (g *gate) approved(ctx context.Context, o origin) (bool, error) {
	p, err := g.memory.state(ctx, o.Ref)
	return p.Approved != "" && p.Approved == o.Head, err
}

// checkFork refuses runs on a pull request from a fork without approval, runs that do more than read, and runs beyond
// the daily limit of its author. Every brief calls it with the present state of the pull request.
func (g *gate) checkFork(ctx context.Context, t tasks.Task, o origin, pr *github.PullRequest) error {
	if !hub.IsFork(pr) {
		return nil
	}
	if t.Profile != agent.Untrusted {
		return thread.Refuse("The pull request comes from a fork. errand can only review it.")
	}
	switch ok, err := g.approved(ctx, o); {
	case err != nil:
		return err
	case o.ApprovedBy != "":
		// Also if another person has approved, because the run counts for the author.
		if err := g.approve(ctx, o.Ref, o.Head, o.ApprovedBy); err != nil {
			return err
		}
	case !ok:
		return thread.Refuse(g.unapproved())
	}
	return g.countForkRun(ctx, t, pr.GetUser().GetLogin())
}

// unapproved is the reason why an unapproved fork is refused, with the ways to approve it.
func (g *gate) unapproved() string {
	return "The pull request comes from a fork. A person with write access has to comment /review or add the label " +
		g.forkLabel + " after each push."
}

// countForkRun counts a run against its author's daily limit (UTC), which covers all repositories: an author who was
// approved once must not be able to spend without limit. A task that is briefed again is counted once.
func (g *gate) countForkRun(ctx context.Context, t tasks.Task, author string) error {
	name := "github/strangers/" + strings.ToLower(author) + "/" + g.now().UTC().Format(time.DateOnly)
	err := g.memory.store.ChangeMemo(ctx, name, func(old json.RawMessage) (json.RawMessage, error) {
		var taken []string // IDs of tasks
		if old != nil {
			if err := json.Unmarshal(old, &taken); err != nil { // do not start again with an empty list
				return nil, fmt.Errorf("read: %w", err)
			}
		}
		if slices.Contains(taken, t.ID) {
			return nil, nil
		}
		if len(taken) >= g.forkRuns {
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

// isListedBot reports whether an account is one of these bots. errand itself never is, even if it is listed.
func (g *gate) isListedBot(login string) bool {
	return strings.HasSuffix(login, "[bot]") && slices.ContainsFunc(g.bots, func(bot string) bool {
		return strings.EqualFold(bot, login)
	})
}

// byBot reports whether a bot requested the task.
func (o origin) byBot() bool { return o.Asked != nil && o.Asked.Bot }

// countBotRequest counts a bot's request as automatic work. It returns an *tasks.InputError if the limit is reached.
func (g *gate) countBotRequest(ctx context.Context, t tasks.Task, o origin) error {
	return g.memory.once(ctx, o.Ref, "bot "+o.Asked.Identity(), t.ID)
}

// limitRate counts a comment against its author's rate limit on the pull request. It returns an ignored if the limit is
// reached. Each author has a separate limit, so people without permission cannot block others.
func (g *gate) limitRate(ctx context.Context, h remarkEvent) error {
	if h.again {
		return nil
	}
	ok, err := g.pacer.AllowRequest(ctx, "ask/"+h.thread()+"/"+strings.ToLower(h.Author))
	if err == nil && !ok {
		err = ignored{slower, slog.LevelInfo}
	}
	return err
}

// mayNot reports whether GitHub says that an account may not request anything. The brief checks again before the run.
func (g *gate) mayNot(ctx context.Context, r thread.Ref, login string) bool {
	p, err := g.permission(ctx, r, login)
	return err == nil && !p.CanWrite()
}
