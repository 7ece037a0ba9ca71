package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
)

// This file submits automatic work on errand's own pull requests: fix failed checks, resolve conflicts, answer reviews.
// An event or the poller submits a task. Its brief decides from the current state whether there is anything to do, and
// records there what was begun. A superfluous event does no harm.

// ownBranches is the prefix of the branches that errand pushes to.
const ownBranches = "errand/"

// nobodyAsked reports whether a task is automatic.
func nobodyAsked(t tasks.Task, o origin) bool { return o.Asked == nil || t.Kind == kindReviewResponse }

// unheard reports whether the ending of an automatic task is not reported: there was nothing to do. The message that
// errand stops working is reported.
func unheard(e tasks.Ending) bool {
	nothing := slices.Contains([]tasks.EndingKind{tasks.Refused, tasks.Superseded, tasks.Withdrawn}, e.Kind)
	return nothing && e.Reason != enough
}

// ownPull finds errand's open pull request of a branch. It returns an ignored if there is none with this head.
func (s *Source) ownPull(ctx context.Context, o origin, branch, head string) (*github.PullRequest, error) {
	gh, err := s.client(ctx, o)
	if err != nil {
		return nil, err
	}
	me, err := s.forge.Login(ctx)
	if err != nil {
		return nil, err
	}
	owner, name := o.path()
	list, _, err := gh.PullRequests.List(ctx, owner, name, &github.PullRequestListOptions{State: "open", Head: owner + ":" + branch})
	if err != nil {
		return nil, fmt.Errorf("list pull requests of %s: %w", branch, err)
	}
	for _, pr := range list {
		if pr.GetHead().GetRef() == branch && pr.GetHead().GetSHA() == head && !hub.IsFork(pr) && pr.GetUser().GetLogin() == me {
			return pr, nil
		}
	}
	return nil, ignored{"It is not the head of one of errand's pull requests.", slog.LevelDebug}
}

// autofix submits automatic work on a pull request. At most one task of a kind runs for a head.
func (s *Source) autofix(ctx context.Context, desk *tasks.Desk, kind, why string, pr *github.PullRequest, o origin) (said string, err error) {
	if s.watched(o.Repo) {
		return "", ignored{onlyWatched, slog.LevelDebug}
	}
	key := kind + " " + o.Head
	p, err := s.memory.state(ctx, o)
	if err != nil {
		return "", err
	}
	old, over := p.Begun[key], false
	if old != "" {
		st, err := desk.Status(ctx, old)
		if over = errors.Is(err, tasks.ErrNotFound) || st.Ending != nil; err != nil && !over {
			return "", err
		}
	}
	id := tasks.NewID(s.cfg.Now(), s.Name(), fmt.Sprintf("%s-%d-%s", kind, o.Number, hub.ShortSHA(o.Head)))
	err = s.memory.changeState(ctx, o, func(p *prState) error {
		if why := p.tired(); why != "" && (why != enough || p.Begun[enough] != "") { // the brief of the first task over the limit says so
			return ignored{why, slog.LevelInfo}
		}
		if now := p.Begun[key]; now != "" && (now != old || !over) {
			id = now
		} else {
			p.note(key, id)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	t, err := s.expected(ctx, draft{Task: tasks.Task{
		ID: id, Source: s.Name(), Kind: kind, Thread: "github/" + o.String(), Class: tasks.Background, Profile: profileOf(pr, agent.Write),
		Repo: o.Repo, Ref: fmt.Sprintf("refs/pull/%d/head", o.Number), Actor: pr.GetUser().GetLogin(),
		Prompt: fmt.Sprintf("%s of pull request #%d of %s: %s", why, o.Number, o.Repo, o.Title),
	}, origin: o}, pr)
	if err != nil {
		return "", err
	}
	return submitted(s.submit(ctx, desk, t))
}

// autofixTalk reads the pull request of an automatic task. Unrequested work is for one head and follows the settings.
func (s *Source) autofixTalk(ctx context.Context, t tasks.Task, o origin) (talk, error) {
	k, err := s.talk(ctx, t, o)
	if err != nil {
		return k, err
	}
	switch head := k.pr.GetHead().GetSHA(); {
	case k.pr.GetState() == "closed":
		return k, &tasks.InputError{Sentence: "The pull request is closed."}
	case o.Asked == nil && head != o.Head:
		return k, &tasks.InputError{Sentence: "Superseded by " + hub.ShortSHA(head) + "."}
	case nobodyAsked(t, o) && !k.want.on(t.Kind):
		return k, &tasks.InputError{Sentence: "The repository's settings switch " + t.Kind + " off."}
	}
	return k, nil
}

// once lets a task do the work of key unless another task has it, within the limit of automatic work. A requested task
// is always allowed.
func (k talk) once(ctx context.Context, key string) error {
	if !nobodyAsked(k.task, k.o) {
		return nil
	}
	var why string
	err := k.memory.changeState(ctx, k.o, func(p *prState) error {
		why = p.once(key, k.task.ID)
		return nil
	})
	if err == nil && why != "" {
		err = &tasks.InputError{Sentence: why}
	}
	return err
}

// once records the task under key, or returns why it must not run.
func (p *prState) once(key, task string) (why string) {
	switch why = p.tired(); {
	case p.Begun[key] == task:
		return "" // the task is briefed again
	case why == enough && !p.begin(enough, task):
		return "It was already reported that a person has to continue."
	case why != "":
		return why
	case !p.begin(key, task):
		return "This was handled before."
	}
	p.Rounds++
	return ""
}

// autofixBrief is the brief of such work. On a pull request of others the result is proposed to them.
func (k talk) autofixBrief(prompt string) tasks.Brief {
	if len(k.want.Checks) > 0 && k.task.Profile == agent.Write {
		prompt += "\n\nBefore you finish, these commands must succeed in the repository's directory:\n\n    " +
			strings.Join(k.want.Checks, "\n    ") +
			"\n\nerrand runs them again after you and reports the results.\n"
	}
	b := k.brief(prompt)
	b.Into = k.pr.GetHead().GetRef()
	return b
}

// spoke resets the count of automatic work, because a person has requested something.
func (m memory) spoke(ctx context.Context, o origin) error {
	return m.changeState(ctx, o, func(p *prState) error {
		p.rest()
		return nil
	})
}

func (p *prState) rest() {
	p.Rounds = 0
	delete(p.Begun, enough)
}

// respond submits the answer to a review of errand's pull request that does not mention errand: feedback is for the
// author anyway.
func (s *Source) respond(ctx context.Context, desk *tasks.Desk, d delivery) (said string, err error) {
	return s.respondTo(ctx, desk, *d.remark)
}

// respondTo submits the answer to a review.
func (s *Source) respondTo(ctx context.Context, desk *tasks.Desk, h heard) (said string, err error) {
	text, named, err := s.addressed(ctx, h)
	if err != nil {
		return "", err
	}
	me, err := s.forge.Login(ctx)
	if err != nil {
		return "", fmt.Errorf("read review: %w", err)
	}
	command, _ := readCommand(text)
	switch {
	case h.pull.GetUser().GetLogin() != me:
		return "", ignored{"The pull request is not errand's.", slog.LevelDebug}
	case s.watched(h.repo):
		return "", ignored{onlyWatched, slog.LevelDebug}
	case h.bot:
		return "", ignored{"The author is a bot.", slog.LevelDebug}
	case named || command != "":
		return "", ignored{"It is a request to errand and is handled as such.", slog.LevelDebug}
	case strings.EqualFold(h.verdict, "approved"), strings.EqualFold(h.verdict, "dismissed"):
		return "", ignored{"The review has no text.", slog.LevelDebug}
	}
	if err := s.pace(ctx, h); err != nil {
		return "", err
	}
	t, err := s.orderOf(ctx, h, work{kind: kindReviewResponse, profile: agent.Write}, "", text)
	if err != nil {
		return "", err
	}
	t.Prompt, t.Class = cmp.Or(text, "See the comments on the lines."), tasks.Background // unrequested work can wait
	return submitted(s.submit(ctx, desk, t))
}

// responder is the prompt for answering a review of the agent's work.
const responder = `This pull request is your work, and a reviewer has commented on it. Go through the points of the review. Check each one in the code, fix those that are right, run the affected tests, and commit. If a point is wrong or is a question, do not change anything for it; answer it. In your answer, list the points with one or two lines each.`

// briefResponse passes on the review.
func (s *Source) briefResponse(ctx context.Context, t tasks.Task, o origin, _ string) (tasks.Brief, error) {
	k, err := s.autofixTalk(ctx, t, o)
	if err != nil {
		return tasks.Brief{}, err
	}
	b, err := k.unanswered(ctx)
	if err != nil {
		return tasks.Brief{}, err
	}
	if !b.asksMore() {
		return tasks.Brief{}, &tasks.InputError{Sentence: "Everything in the review is a request to errand and is handled as such."}
	}
	if err := k.once(ctx, "review "+o.Asked.identity()); err != nil {
		return tasks.Brief{}, err
	}
	return k.autofixBrief(responder + "\n\n" + b.prompt(k)), nil
}
