package github

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/policy"
)

// remark does what a new remark requests: an issue may be work without a request, and so may a review.
func (i *interpreter) remark(ctx context.Context, d delivery) (response string, err error) {
	h := *d.remark
	if h.said, err = i.read(ctx, h); err != nil {
		return "", err
	}
	response, err = i.handleComment(ctx, h)
	_, not := errors.AsType[subject.Ignored](err)
	_, refused := errors.AsType[*tasks.InputError](err)
	if (err == nil || not || refused) && h.OnIssue && h.said.requests(h) {
		err = cmp.Or(i.noteSettled(ctx, h), err)
	}
	if h.Place == thread.InIssue && errors.Is(err, notAddressed) {
		return i.handleNewIssue(ctx, h)
	}
	if not && h.Place == thread.InReview {
		return i.handleReview(ctx, h)
	}
	return response, err
}

// handleComment does what a comment requests. It ignores a comment that neither mentions errand nor begins with a
// command.
func (i *interpreter) handleComment(ctx context.Context, h remarkEvent) (response string, err error) {
	said := h.said
	if !said.asks() && (!said.mistaken || i.gate.MayNot(ctx, h.Ref, h.Author)) {
		return "", notAddressed
	}
	if err := i.ignoreOvertaken(ctx, h); err != nil {
		return "", err
	}
	if err := i.limitRate(ctx, h); err != nil {
		if _, ok := errors.AsType[subject.Ignored](err); ok {
			i.react(ctx, h, notDone)
		}
		return "", err
	}
	mention := said.word == "" && !said.mistaken && said.rest != ""
	forPeople := i.gate.MayCommand(h.Author, h.Bot)
	if (said.answers || mention) && forPeople.Allowed {
		if response, err := i.submitAnswer(ctx, h); !errors.Is(err, tasks.ErrNoQuestion) {
			return response, err
		}
	}
	if said.word != "" && said.unavailableFor(h) {
		why := onlyOnIssues
		if h.OnIssue {
			why = onlyOnPulls
		}
		i.note(ctx, h, why, notDone)
		return why, nil
	}
	if !forPeople.Allowed && (said.control != nil || said.answers) {
		return "", subject.Ignore(forPeople.Reason)
	}
	if said.control != nil {
		return i.runCommand(ctx, h)
	}
	if said.mistaken {
		i.note(ctx, h, said.mistake, notDone)
		return "Not a command.", nil
	}
	response, err = i.submitRequest(ctx, h)
	if input, refused := errors.AsType[*tasks.InputError](err); refused {
		i.note(ctx, h, input.Sentence, notDone)
	}
	return response, err
}

// notAddressed is the reason why most remarks become no task.
var notAddressed = subject.IgnoreQuietly("It is not addressed to errand.")

// read reads a remark, unless its author or its place does not count.
func (i *interpreter) read(ctx context.Context, h remarkEvent) (said, error) {
	switch {
	case i.repository != nil && !i.repository(h.Repo):
		return said{}, subject.Ignore("Repository " + h.Repo + " is not configured.")
	case h.OnIssue && i.watched(h.Repo):
		return said{}, subject.IgnoreQuietly(subject.OnlyWatched)
	}
	author := i.gate.Account(h.Author, h.Bot)
	author.Member = true
	if v := policy.Decide(author, policy.Ask, policy.Object{Takes: true}, policy.Posture{}); !v.Allowed {
		return said{}, subject.IgnoreQuietly("The author is a bot.")
	}
	me, err := i.api.Forge.Login(ctx)
	if err != nil {
		return said{}, err
	}
	if thread.IsMarked(h.Body) || strings.EqualFold(h.Author, me) {
		return said{}, subject.IgnoreQuietly("The author is errand.")
	}
	return readRemark(h.Body, me), nil
}

// limitRate counts a comment against its author's rate limit on the pull request. It returns an ignored if the limit is
// reached. Each author has a separate limit, so people without permission cannot block others.
func (i *interpreter) limitRate(ctx context.Context, h remarkEvent) error {
	if h.again {
		return nil
	}
	ok, err := i.pacer.AllowRequest(ctx, "ask/"+h.thread()+"/"+strings.ToLower(h.Author))
	if err == nil && !ok {
		err = subject.Ignore(slower)
	}
	return err
}

// ignoreOvertaken ignores a comment that was deleted or settled without a task before, and a request that was stopped.
func (i *interpreter) ignoreOvertaken(ctx context.Context, h remarkEvent) error {
	p, err := i.memory.State(ctx, h.Ref)
	if err != nil {
		return err
	}
	if slices.Contains(p.Settled, h.task()) {
		return subject.Ignore("The comment was deleted, or handled before.")
	}
	if c := h.said.command; h.task() < p.Stopped && (c.control == nil || c.word == cmdRetry) {
		return subject.Ignore("It was stopped.")
	}
	return nil
}
