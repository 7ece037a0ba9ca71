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

// A stranger's code is read by nobody but people until one of them who may write to the repository has agreed, by a comment /review or by a
// label. That word is for one commit: what is pushed later needs another one. What runs then runs as agent.Untrusted, and a stranger
// has it a few times a day.

// profileOf is the most that may be done with a pull request's code, at most what is asked for.
func profileOf(pr *github.PullRequest, asked agent.Profile) agent.Profile {
	if hub.IsFork(pr) {
		return agent.Untrusted
	}
	return asked
}

// movedSince reports whether the head may be another than somebody saw who spoke at that time. GitHub tells times in whole seconds, so a push
// in the same one counts. Only the head's repository says when it was pushed to; nobody pushes to one that is gone.
func movedSince(pr *github.PullRequest, at time.Time) bool {
	pushed := pr.GetHead().GetRepo().GetPushedAt().Time
	return !pushed.IsZero() && !pushed.Truncate(time.Second).Before(at.Truncate(time.Second))
}

// approve notes that somebody lets this head of a stranger's run. It is an *tasks.InputError if he may not say so.
func (s *Source) approve(ctx context.Context, o origin, head, by string) error {
	if err := s.mustWrite(ctx, o, by); err != nil {
		return err
	}
	return s.memory.changeState(ctx, o, func(p *prState) error {
		p.Approved, p.ApprovedBy = head, by
		return nil
	})
}

// approved reports whether somebody has.
func (s *Source) approved(ctx context.Context, o origin) (bool, error) {
	p, err := s.memory.state(ctx, o)
	return p.Approved != "" && p.Approved == o.Head, err
}

// admit refuses what must not run of a stranger's pull request: work for which nobody has spoken, or more than reading, or more than a
// day's ration. Every brief asks it, with the pull request as it is now.
func (s *Source) admit(ctx context.Context, t tasks.Task, o origin, pr *github.PullRequest) error {
	if !hub.IsFork(pr) {
		return nil
	}
	if t.Profile != agent.Untrusted {
		return &tasks.InputError{Sentence: "The pull request comes from a fork: errand reads it and does nothing else there."}
	}
	switch ok, err := s.approved(ctx, o); {
	case err != nil:
		return err
	case o.ApprovedBy != "":
		if err := s.approve(ctx, o, o.Head, o.ApprovedBy); err != nil { // although somebody else has: the author's ration is spent
			return err
		}
	case !ok:
		return &tasks.InputError{Sentence: s.unapproved()}
	}
	return s.ration(ctx, t, pr.GetUser().GetLogin())
}

// unapproved says what a stranger's pull request waits for.
func (s *Source) unapproved() string {
	return "The pull request comes from a fork: somebody who may write to the repository has to comment /review or add the label " +
		s.cfg.ForkLabel + ", for each of its heads."
}

// ration takes one of the runs that a stranger has in a day (UTC), in all repositories together: who was waved through once must not be able
// to spend without end. A task that is briefed again takes none.
func (s *Source) ration(ctx context.Context, t tasks.Task, author string) error {
	name := "github/strangers/" + strings.ToLower(author) + "/" + s.cfg.Now().UTC().Format(time.DateOnly)
	err := s.cfg.Memory.ChangeMemo(ctx, name, func(old json.RawMessage) (json.RawMessage, error) {
		var taken []string // IDs of tasks
		if old != nil {
			if err := json.Unmarshal(old, &taken); err != nil { // not forgotten: it would begin anew
				return nil, fmt.Errorf("read: %w", err)
			}
		}
		if slices.Contains(taken, t.ID) {
			return nil, nil
		}
		if len(taken) >= s.cfg.ForkRuns {
			return nil, &tasks.InputError{Sentence: fmt.Sprintf(
				"%s has had %d reviews of pull requests from forks today, which is all that an outside author gets.", author, len(taken))}
		}
		return json.Marshal(append(taken, t.ID))
	})
	if err != nil {
		return fmt.Errorf("ration %s: %w", author, err)
	}
	return nil
}

// Other bots are not heard, but for those that an operator has listed. What these ask for counts as if it had come by itself: it is done some
// times, until a person says something, so that two bots which answer each other come to an end. They give orders, and nothing else: they
// let no stranger's code run, answer no question, and neither stop nor resume anything.

// mayAsk reports whether an account is one of these bots. We ourselves never are, whatever the list says.
func (s *Source) mayAsk(login string) bool {
	return strings.HasSuffix(login, "[bot]") && slices.ContainsFunc(s.cfg.Bots, func(bot string) bool { return strings.EqualFold(bot, login) })
}

// byBot reports whether a bot has asked for a task.
func (o origin) byBot() bool { return o.Asked != nil && o.Asked.Bot }

// round counts a bot's order among the work that comes by itself. An *tasks.InputError refuses what is too much.
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
