package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/policy"
)

// request returns the request of a remark.
func (h remarkEvent) request() *subject.Request {
	return &subject.Request{Spot: h.Spot, At: h.At, URL: h.URL, Command: h.said.word, Words: h.said.rest, Bot: h.Bot}
}

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
	switch {
	case said.word != "" && said.unavailableFor(h):
		why := onlyOnIssues
		if h.OnIssue {
			why = onlyOnPulls
		}
		i.note(ctx, h, why, notDone)
		return why, nil
	case !forPeople.Allowed && (said.control != nil || said.answers):
		return "", subject.Ignore(forPeople.Reason)
	case said.control != nil:
		return i.runCommand(ctx, h)
	case said.mistaken:
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

// submitRequest submits the task that a comment requests, by a command or a mention.
func (i *interpreter) submitRequest(ctx context.Context, h remarkEvent) (response string, err error) {
	w, err := i.workOf(ctx, h)
	if err != nil {
		return "", err
	}
	t, err := i.requestedTask(ctx, h, w)
	if err != nil {
		return "", err
	}
	receipt, err := t.Submit(ctx, i.desk)
	if err == nil {
		err = i.notePlan(ctx, h)
	}
	if err != nil {
		return "", err
	}
	over := i.ignoreOvertaken(ctx, h) // again: a deletion or a stop may have found no task a moment ago
	if _, ok := errors.AsType[subject.Ignored](over); ok {
		_, err = i.withdrawTask(ctx, h)
	}
	if err := cmp.Or(err, over); err != nil {
		return "", err
	}
	if receipt.New {
		i.react(ctx, h, eyes)
	}
	return "Task " + receipt.ID, nil
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

// requestedTask returns the task for submitRequest.
func (i *interpreter) requestedTask(ctx context.Context, h remarkEvent, w work) (subject.Draft, error) {
	if h.OnIssue {
		return i.requestedIssueTask(ctx, h, w)
	}
	pr, err := i.pull(ctx, h)
	if err != nil {
		return subject.Draft{}, err
	}
	o := subject.OfPull(h.Repo, pr)
	if h.Issue != nil { // the state at that time: the event may be late, and the pull request was read just now
		o.Title, o.Body = subject.ClipTexts(h.Issue.GetTitle(), h.Issue.GetBody())
	}
	o.Installation, o.Action, o.Full = h.Installation, subject.ActionAsked, w.full
	o.Asked = h.request()
	t := subject.Draft{Pull: pr, Task: tasks.Task{
		ID: h.task(), Source: sourceName, Kind: w.kind, Thread: h.thread(), Class: tasks.Interactive,
		Profile: subject.ProfileOf(pr, w.profile), Repo: h.Repo, Ref: fmt.Sprintf("refs/pull/%d/head", h.Number),
		Actor: h.Author,
	}}
	if w.ownThread {
		t.Thread = h.thread() + "/review"
	}
	if w.ownThread || hub.IsFork(pr) { // of a fork, only the approved head
		t.Ref = o.Head
	}
	if hub.IsFork(pr) {
		writes := w.profile == agent.Write && h.said.word != "" // a mention is answered without writing
		v := policy.Decide(i.gate.Account(h.Author, h.Bot), policy.Fork,
			policy.Object{Writes: writes, Moved: subject.MovedSince(pr, h.At), Approved: true}, policy.Posture{})
		if !v.Allowed && h.Bot {
			return subject.Draft{}, subject.Ignore(v.Reason)
		}
		if !v.Allowed {
			return subject.Draft{}, thread.Refuse(v.Reason)
		}
	}
	if w.kind == "review" {
		o.ApprovedBy = h.Author
	}
	t.Prompt, t.About = promptOf(o, w), o
	return i.settings.ApplyTo(ctx, t)
}

// promptOf returns the request of a comment.
func promptOf(o subject.Origin, w work) string {
	switch a := o.Asked; {
	case a.Command != "" && w.kind != mentionWork.kind:
		return strings.TrimSpace(fmt.Sprintf("%s %s #%d of %s: %s\n\n%s",
			a.Command, o.Kind(), o.Number, o.Repo, o.Title, a.Words))
	case a.Words == "":
		return wordless[a.Place]
	default:
		return a.Words
	}
}

// wordless is the request of a comment that only mentions errand.
var wordless = map[thread.Place]string{
	thread.InConversation: "Read the conversation and answer it.",
	thread.OnLine:         "Read this thread and answer it.",
	thread.InReview:       "Do what this review asks for.",
	thread.InIssue:        "Read this issue and do what it asks for.",
}

// pull returns the pull request of a comment. It reads it from GitHub if the event does not contain it.
func (i *interpreter) pull(ctx context.Context, h remarkEvent) (*github.PullRequest, error) {
	if h.Pull != nil {
		return h.Pull, nil
	}
	_, pr, err := i.api.ReachPull(ctx, h.Ref)
	return pr, err
}

// withdraw withdraws the task of a comment that was deleted or no longer requests it, if the task has not started. It
// may be repeated.
func (i *interpreter) withdraw(ctx context.Context, d delivery) (response string, err error) {
	h := d.remark
	// First: the event of the comment, which may come later or now, looks for this after it has submitted.
	if err := i.noteSettled(ctx, *h); err != nil {
		return "", err
	}
	done, err := i.withdrawTask(ctx, *h)
	if err != nil {
		return "", err
	}
	if !done {
		return "", subject.IgnoreQuietly("No task of this comment is waiting.")
	}
	if d.action == actionEdited {
		i.respond(ctx, *h, func(ctx context.Context, t thread.Thread) error {
			return t.RemoveReaction(ctx, h.Remark, eyes)
		})
	}
	return "Withdrawn " + h.task(), nil
}

// noteSettled records that a comment becomes no task any more, if it is none: it was deleted, edited to be no request,
// refused, or an answer. Otherwise an edit would make it a new request.
func (i *interpreter) noteSettled(ctx context.Context, h remarkEvent) error {
	if err := i.worksOn(h.Repo); err != nil {
		return err
	}
	if _, err := i.desk.Status(ctx, h.task()); !errors.Is(err, tasks.ErrNotFound) {
		return err
	}
	return i.memory.ChangeState(ctx, h.Ref, func(p *subject.State) error {
		if !slices.Contains(p.Settled, h.task()) {
			p.Settled = append(p.Settled, h.task())
			p.Settled = p.Settled[max(0, len(p.Settled)-maxSettled):]
		}
		return nil
	})
}

// withdrawTask withdraws the task of a comment, if there is one and it has not started.
func (i *interpreter) withdrawTask(ctx context.Context, h remarkEvent) (done bool, err error) {
	err = i.desk.As(ctx, h.sender(), "withdraw", h.task(), func(ctx context.Context) (_ bool, err error) {
		done, err = i.desk.Withdraw(ctx, h.task())
		if errors.Is(err, tasks.ErrNotFound) { // most comments are no task
			err = nil
		}
		return false, err
	})
	if err == nil && done && h.OnIssue {
		err = i.memory.ForgetRequest(ctx, h.Ref, h.task())
	}
	return done, err
}

// unamended is the response to an edit that changes no task.
var unamended = subject.IgnoreQuietly("No waiting task is changed by this edit.")

// amendable reports whether an edit changes a task: only that of its author, before the task starts. An approval stays
// what it is, and the text of an issue has no part in its label.
func (h remarkEvent) amendable(st tasks.Status) bool {
	o, err := subject.Of(st.Task)
	return err == nil && st.State == "waiting" && strings.EqualFold(h.by, h.Author) &&
		o.Action == subject.ActionAsked && o.Asked.Command != cmdApprove
}

// amend changes the task of an edited remark on an issue, or withdraws it if the new text requests nothing. A task that
// has started keeps the text that it was requested with, as does one whose text someone other than its author has
// edited. If the event of the remark itself is still to be interpreted, this one takes its place.
func (i *interpreter) amend(ctx context.Context, d delivery) (response string, err error) {
	h := *d.remark
	if !h.OnIssue {
		return "", unamended
	}
	st, err := i.desk.Status(ctx, h.task())
	early := errors.Is(err, tasks.ErrNotFound)
	if early {
		if early, err = i.isEarly(ctx, h); err == nil && !early {
			err = unamended
		}
	}
	switch {
	case err != nil:
		return "", err
	case early:
	case st.Ending != nil && st.Ending.Kind == tasks.Withdrawn: // perhaps not completely
		return i.withdraw(ctx, d)
	case !h.amendable(st):
		return "", unamended
	}
	if h.said, err = i.read(ctx, h); err != nil {
		return "", err
	}
	if !h.said.requests(h) {
		return i.withdraw(ctx, d)
	}
	if early { // and changes the task if the other event made one meanwhile
		if response, err = i.remark(ctx, d); err != nil {
			return response, err
		}
	}
	return i.reword(ctx, h)
}

// lateEvent is how much later than its remark an event is interpreted at most: the inbox tries it again for a day.
const lateEvent = 25 * time.Hour

// isEarly reports whether the event of an edited remark may still come and make a request of its old text.
func (i *interpreter) isEarly(ctx context.Context, h remarkEvent) (bool, error) {
	if !strings.EqualFold(h.by, h.Author) || i.now().Sub(h.At) > lateEvent {
		return false, nil
	}
	h.Body = h.before
	old, err := i.read(ctx, h)
	return old.requests(h), err
}

// reword gives a waiting task the words of an edited remark.
func (i *interpreter) reword(ctx context.Context, h remarkEvent) (response string, err error) {
	w, err := i.workOf(ctx, h)
	if err != nil {
		return "", err
	}
	request, err := i.requestedIssueTask(ctx, h, w)
	if err != nil {
		return "", err
	}
	t, err := request.WithOrigin()
	if err != nil {
		return "", err
	}
	at := h.Edited
	if h.Place == thread.InIssue {
		at = h.Issue.GetUpdatedAt().Time
	}
	var done tasks.Amendment
	err = i.desk.As(ctx, h.sender(), "edit", t.ID, func(ctx context.Context) (_ bool, err error) {
		done, err = i.desk.Amend(ctx, t, tasks.Edit{Key: strconv.FormatInt(at.UnixMicro(), 10), Waiting: true})
		return false, err
	})
	switch {
	case err == nil && done != tasks.Replaced:
		return "", unamended
	case err == nil:
		err = i.notePlan(ctx, h)
	}
	if err != nil {
		return "", err
	}
	return "Amended " + t.ID, nil
}
