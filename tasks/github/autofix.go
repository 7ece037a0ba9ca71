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

// What follows from a pull request of ours by itself: failed checks are mended, conflicts resolved, reviews answered. An event or a look at the
// pull request submits a task; whether there is anything to do is found out when it is briefed, by how things are then, and what is done
// once is noted there. So an event too many does no harm.

// ownBranches is how the names of the branches begin that we push to.
const ownBranches = "errand/"

// nobodyAsked reports whether a task is of those that follow by themselves.
func nobodyAsked(t tasks.Task, o origin) bool { return o.Asked == nil || t.Kind == kindReviewResponse }

// unheard reports whether nothing is said of the ending of a task that nobody asked for: nothing was to be done. That we have stopped is worth a
// word.
func unheard(e tasks.Ending) bool {
	nothing := slices.Contains([]tasks.EndingKind{tasks.Refused, tasks.Superseded, tasks.Withdrawn}, e.Kind)
	return nothing && e.Reason != enough
}

// ownPull finds our open pull request of a branch. It is an ignored if there is none with this head.
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
	return nil, ignored{"It is not the head of a pull request of errand's.", slog.LevelDebug}
}

// mend submits work on a pull request that follows by itself, one task of a kind and head at a time.
func (s *Source) mend(ctx context.Context, desk *tasks.Desk, kind, why string, pr *github.PullRequest, o origin) (said string, err error) {
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
		if why := p.tired(); why != "" && (why != enough || p.Begun[enough] != "") { // the first one that is too many says so, by its brief
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
	t, err := s.expected(ctx, draft{tasks.Task{
		ID: id, Source: s.Name(), Kind: kind, Thread: "github/" + o.String(), Class: tasks.Background, Profile: profileOf(pr, agent.Write),
		Repo: o.Repo, Ref: fmt.Sprintf("refs/pull/%d/head", o.Number), Actor: pr.GetUser().GetLogin(),
		Prompt: fmt.Sprintf("%s of pull request #%d of %s: %s", why, o.Number, o.Repo, o.Title),
	}, o}, pr)
	if err != nil {
		return "", err
	}
	return submitted(s.submit(ctx, desk, t))
}

// mending looks at the pull request of a task that mends it. One that nobody asked for is about a head, and as the settings want it.
func (s *Source) mending(ctx context.Context, t tasks.Task, o origin) (talk, error) {
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

// once lets a task do what key stands for if no other one has, and no more of them than people want. Who was asked does it anyway.
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

// once notes it, or says why not.
func (p *prState) once(key, task string) (why string) {
	switch why = p.tired(); {
	case p.Begun[key] == task:
		return "" // it is briefed again
	case why == enough && !p.begin(enough, task):
		return "It was said before that somebody has to go on."
	case why != "":
		return why
	case !p.begin(key, task):
		return "This was looked at before."
	}
	p.Rounds++
	return ""
}

// mended is the brief of such work. On a pull request of others what comes of it is proposed to them.
func (k talk) mended(prompt string) tasks.Brief {
	if len(k.want.Checks) > 0 && k.task.Profile == agent.Write {
		prompt += "\n\nBefore you end, these have to succeed, in the directory of the repository:\n\n    " + strings.Join(k.want.Checks, "\n    ") +
			"\n\nerrand runs them again after you, and tells people what they came to.\n"
	}
	b := k.brief(prompt)
	b.Into = k.pr.GetHead().GetRef()
	return b
}

// spoke begins the count of automatic work anew: somebody has asked for something.
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

// respond submits the answer to a review of a pull request of ours that does not speak to us: feedback is meant for its author all the same.
func (s *Source) respond(ctx context.Context, desk *tasks.Desk, d delivery) (said string, err error) {
	return s.heed(ctx, desk, *d.remark)
}

// heed submits the answer to a review.
func (s *Source) heed(ctx context.Context, desk *tasks.Desk, h heard) (said string, err error) {
	text, named, err := s.addressed(ctx, h)
	if err != nil {
		return "", err
	}
	me, err := s.forge.Login(ctx)
	if err != nil {
		return "", fmt.Errorf("take a review: %w", err)
	}
	command, _ := readCommand(text)
	switch {
	case h.pull.GetUser().GetLogin() != me:
		return "", ignored{"It is a review of somebody else's work.", slog.LevelDebug}
	case s.watched(h.repo):
		return "", ignored{onlyWatched, slog.LevelDebug}
	case h.bot:
		return "", ignored{"It is a bot's.", slog.LevelDebug}
	case named || command != "":
		return "", ignored{"It speaks to errand, and is answered as such.", slog.LevelDebug}
	case strings.EqualFold(h.verdict, "approved"), strings.EqualFold(h.verdict, "dismissed"):
		return "", ignored{"The review asks for nothing.", slog.LevelDebug}
	}
	if err := s.pace(ctx, h); err != nil {
		return "", err
	}
	t, err := s.orderOf(ctx, h, work{kind: kindReviewResponse, profile: agent.Write}, "", text)
	if err != nil {
		return "", err
	}
	t.Prompt, t.Class = cmp.Or(text, "See the comments on the lines."), tasks.Background // nobody has asked for it, and waits
	return submitted(s.submit(ctx, desk, t))
}

// responder is what the agent is asked for when its work was reviewed.
const responder = `This pull request is your work, and somebody has reviewed it. Go through the points of the review: check each in the code, then mend what is right about it, run the tests that it concerns, and commit. Where a point is mistaken, or is a question, change nothing and answer it. In your answer go through the points in a line or two each.`

// briefResponse hands on the review.
func (s *Source) briefResponse(ctx context.Context, t tasks.Task, o origin, _ string) (tasks.Brief, error) {
	k, err := s.mending(ctx, t, o)
	if err != nil {
		return tasks.Brief{}, err
	}
	b, err := k.unanswered(ctx)
	if err != nil {
		return tasks.Brief{}, err
	}
	if !b.asksMore() {
		return tasks.Brief{}, &tasks.InputError{Sentence: "All that the review says speaks to errand, and is answered as such."}
	}
	if err := k.once(ctx, "review "+o.Asked.identity()); err != nil {
		return tasks.Brief{}, err
	}
	return k.mended(responder + "\n\n" + b.prompt(k)), nil
}
