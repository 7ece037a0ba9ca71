package github

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
)

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
func (s *Source) approve(ctx context.Context, o origin, head, by string) error {
	if err := s.mustWrite(ctx, o, by); err != nil {
		return err
	}
	return s.memory.changeState(ctx, o, func(p *prState) error {
		p.Approved, p.ApprovedBy = head, by
		return nil
	})
}

// approved reports whether a person has approved this head.
func (s *Source) approved(ctx context.Context, o origin) (bool, error) {
	p, err := s.memory.state(ctx, o)
	return p.Approved != "" && p.Approved == o.Head, err
}

// admit refuses what a pull request from a fork must not do: runs without approval, anything but reading, and more runs
// than the daily ration. Every brief calls it with the pull request as it is now.
func (s *Source) admit(ctx context.Context, t tasks.Task, o origin, pr *github.PullRequest) error {
	if !hub.IsFork(pr) {
		return nil
	}
	if t.Profile != agent.Untrusted {
		return &tasks.InputError{Sentence: "The pull request comes from a fork. errand can only review it."}
	}
	switch ok, err := s.approved(ctx, o); {
	case err != nil:
		return err
	case o.ApprovedBy != "":
		if err := s.approve(ctx, o, o.Head, o.ApprovedBy); err != nil { // even if another person has approved: it uses up the author's ration
			return err
		}
	case !ok:
		return &tasks.InputError{Sentence: s.unapproved()}
	}
	return s.ration(ctx, t, pr.GetUser().GetLogin())
}

// unapproved says how a pull request from a fork can be approved.
func (s *Source) unapproved() string {
	return "The pull request comes from a fork. A person with write access has to comment /review or add the label " +
		s.cfg.ForkLabel + " after each push."
}

// ration counts a run against its author's daily limit (UTC), which covers all repositories: an author who was approved
// once must not be able to spend without limit. A task that is briefed again is counted once.
func (s *Source) ration(ctx context.Context, t tasks.Task, author string) error {
	name := "github/strangers/" + strings.ToLower(author) + "/" + s.cfg.Now().UTC().Format(time.DateOnly)
	err := s.cfg.Memory.ChangeMemo(ctx, name, func(old json.RawMessage) (json.RawMessage, error) {
		var taken []string // IDs of tasks
		if old != nil {
			if err := json.Unmarshal(old, &taken); err != nil { // do not start again with an empty list
				return nil, fmt.Errorf("read: %w", err)
			}
		}
		if slices.Contains(taken, t.ID) {
			return nil, nil
		}
		if len(taken) >= s.cfg.ForkRuns {
			return nil, &tasks.InputError{Sentence: fmt.Sprintf(
				"%s has had %d reviews of pull requests from forks today, the daily limit for one author.", author, len(taken))}
		}
		return json.Marshal(append(taken, t.ID))
	})
	if err != nil {
		return fmt.Errorf("ration %s: %w", author, err)
	}
	return nil
}

// Comments by other bots are ignored, except for bots that an operator has listed. Their requests count as automatic
// work: only a few are done until a person writes, so that two bots cannot answer each other without end. Listed bots
// can request work and nothing else: they cannot approve a fork, answer a question, or stop or resume anything.

// mayAsk reports whether an account is one of these bots. errand itself never is, even if it is listed.
func (s *Source) mayAsk(login string) bool {
	return strings.HasSuffix(login, "[bot]") && slices.ContainsFunc(s.cfg.Bots, func(bot string) bool { return strings.EqualFold(bot, login) })
}

// byBot reports whether a bot requested the task.
func (o origin) byBot() bool { return o.Asked != nil && o.Asked.Bot }

// round counts a bot's request as automatic work. It returns an *tasks.InputError if the limit is reached.
func (s *Source) round(ctx context.Context, t tasks.Task, o origin) error {
	var why string
	err := s.memory.changeState(ctx, o, func(p *prState) error {
		why = p.once("bot "+o.Asked.identity(), t.ID)
		return nil
	})
	if err == nil && why != "" {
		err = &tasks.InputError{Sentence: why}
	}
	return err
}
