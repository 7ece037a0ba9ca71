package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
)

// reviewThread returns the thread of a pull request's reviews.
func reviewThread(o subject.Origin) string { return "github/" + o.String() + "/review" }

// candidate is a review before it is submitted, if it is wanted.
type candidate struct {
	subject.Draft
	me  string          // errand's login; "" if GitHub did not return it
	why subject.Ignored // why no review is wanted; zero if one is
}

// submitReview submits the review of a pull request's head with its base, unless it has one, and ends the reviews of
// others. The same head and base give the same task, for every event and poll.
func (i *interpreter) submitReview(ctx context.Context, t candidate) (response string, err error) {
	o := t.About
	if !tasks.ValidID(t.ID) {
		return subject.Submitted(t.Submit(ctx, i.desk)) // the desk reports the error; nothing is recorded
	}
	why := supersededBy + hub.ShortSHA(o.Head) + "."
	err = i.memory.ChangeState(ctx, o.Ref, func(p *subject.State) (err error) {
		if p.Head == o.Head && !p.IsAt(o) {
			why = supersededBy + hub.ShortSHA(o.Head) + " onto " + untrusted.Line(o.Base, 100) + "."
		}
		t.ID, err = recordHead(p, t.ID, o, t.Pull.GetUpdatedAt().Time)
		return err
	})
	if err != nil {
		return "", err
	}
	// First: it may have inherited requests from the others.
	if response, err = subject.Submitted(t.Submit(ctx, i.desk)); err != nil {
		return "", err
	}
	return response, i.desk.Supersede(ctx, t.Thread, why, otherVersion(o, t.ID))
}

// supersededBy begins the reason of a review that ends because another one continues it.
const supersededBy = "Superseded by "

// isContinued reports whether an ending has such a reason.
func isContinued(e tasks.Ending) bool {
	return e.Kind == tasks.Superseded && strings.HasPrefix(e.Reason, supersededBy)
}

// otherVersion matches the reviews of other heads or with other bases than those of o. The review with the ID current
// is of this one, whatever base its event had: its brief has read the base.
func otherVersion(o subject.Origin, current string) func(tasks.Task) bool {
	return func(t tasks.Task) bool {
		was, err := subject.Of(t)
		if err != nil {
			return t.Kind == subject.KindReview
		}
		return t.Kind == subject.KindReview && (was.Head != o.Head || was.Base != o.Base && t.ID != current)
	}
}

// recordHead records a head and returns the task that reviews it: the given one, or the one that already does.
func recordHead(p *subject.State, id string, o subject.Origin, at time.Time) (string, error) {
	if err := recordUpdateTime(p, at); err != nil {
		return "", err
	}
	back := p.Head == o.Head && !p.IsAt(o) // onto another base, whose review may be about to give this head its status
	p.MoveTo(o)
	asked := o.ByPerson() // they may want the same review again
	switch {
	case p.Paused && !asked:
		return "", subject.Ignore("The pull request was paused by " + p.PausedBy + ".")
	case p.HasReviewed(o) && !asked && !back:
		return "", subject.Ignore("The head was reviewed before.")
	case p.Reviews >= subject.MaxReviews && !asked:
		return "", subject.Ignore("The pull request has reached its limit of automatic reviews.")
	case p.Review == "" || asked:
		p.Review = id
	}
	return p.Review, nil
}

// recordUpdateTime records the time of a pull request's state. Late and repeated events must not restore an older
// state.
func recordUpdateTime(p *subject.State, at time.Time) error {
	if at.Before(p.At) {
		return subject.Ignore("A newer state of the pull request is known.")
	}
	p.At = at
	return nil
}

// endReviews ends the reviews of a closed pull request or draft. If it is reopened, they start again.
func (i *interpreter) endReviews(ctx context.Context, d delivery) (response string, err error) {
	e := d.pull
	if err := i.worksOn(e.GetRepo().GetFullName()); err != nil {
		return "", err
	}
	o := subject.OfPull(e.GetRepo().GetFullName(), e.GetPullRequest())
	err = i.memory.ChangeState(ctx, o.Ref, func(p *subject.State) error {
		p.Review = ""
		return recordUpdateTime(p, e.GetPullRequest().GetUpdatedAt().Time)
	})
	if err != nil {
		return "", err
	}
	why := unwanted(e.GetPullRequest(), "", "")
	if err := i.desk.Supersede(ctx, reviewThread(o), why,
		func(t tasks.Task) bool { return t.Kind == subject.KindReview }); err != nil {
		return "", err
	}
	if d.action == actionClosed {
		o.Installation = e.GetInstallation().GetID()
		if err := i.closeFindings(ctx, o, e.GetPullRequest().GetMerged()); err != nil {
			i.log.Warn("count findings", "err", err)
		}
	}
	return fmt.Sprintf("Stopped the reviews of %s. %s", o, why), nil
}

// A push makes the review of the earlier head pointless. Requests for that review carry over to the next one: the
// review of the new head belongs to the requester, has their text, and adds the reaction to their comment. On a pull
// request from a fork the approval was for the earlier head, so nothing carries over, but the review of that head still
// ends.

// replaceReviews submits the review of a pull request's head in place of the reviews of earlier heads. One that is not
// wanted is submitted if it inherits a request.
func (i *interpreter) replaceReviews(ctx context.Context, t candidate) (response string, err error) {
	if err := i.endForkReviews(ctx, t); err != nil {
		return "", err
	}
	if t, err = i.inheritRequests(ctx, t); err != nil {
		return "", err
	}
	if t.why != (subject.Ignored{}) {
		return "", t.why
	}
	if t.Draft, err = i.settings.ApplyTo(ctx, t.Draft); err != nil {
		return "", err
	}
	return i.submitReview(ctx, t)
}

// endForkReviews ends the reviews of other heads of a pull request from a fork, and those with other bases: the new
// head may not be approved, and the approved one is gone.
func (i *interpreter) endForkReviews(ctx context.Context, t candidate) error {
	if !hub.IsFork(t.Pull) {
		return nil
	}
	o := t.About
	current, why := "", ""
	err := i.memory.ChangeState(ctx, o.Ref, func(p *subject.State) error {
		if err := recordUpdateTime(p, t.Pull.GetUpdatedAt().Time); err != nil {
			return err
		}
		why = "The head of the pull request has moved to " + hub.ShortSHA(o.Head) + "."
		if p.Head == o.Head {
			why = "The base of the pull request is now " + untrusted.Line(o.Base, 100) + "."
		}
		p.MoveTo(o)
		current = p.Review
		return nil
	})
	if err != nil {
		return err
	}
	return i.desk.Supersede(ctx, t.Thread, why, otherVersion(o, current))
}

// inheritRequests gives a review the requests for unfinished reviews of other heads, which make it wanted. A push by
// errand ends no review. Requests by people without permission are dropped, because they would get the next review
// refused, and so are requests by bots, which were counted already.
func (i *interpreter) inheritRequests(ctx context.Context, t candidate) (candidate, error) {
	if hub.IsFork(t.Pull) || t.Pull.GetState() == "closed" || t.Actor == t.me {
		return t, nil
	}
	o := t.About
	open, err := i.desk.Open(ctx, t.Thread)
	if err != nil {
		return candidate{}, err
	}
	p, err := i.memory.State(ctx, o.Ref)
	if err != nil {
		return candidate{}, err
	}
	current := ""
	if p.IsAt(o) {
		current = p.Review
	}
	for _, st := range open {
		before, err := subject.Of(st.Task)
		if err != nil || !otherVersion(o, current)(st.Task) {
			continue
		}
		switch {
		case !before.ByPerson(), before.ByBot(), i.gate.MayNot(ctx, o.Ref, st.Task.Actor):
			o.Also = append(o.Also, before.Spots()...)
		case before.Asked != nil: // the latest text counts, and the widest scope
			o.Also = append(o.Spots(), before.Also...)
			o.Asked, o.Full = before.Asked, o.Full || before.Full
			t.Actor, t.Class, t.Prompt, t.why = st.Task.Actor, tasks.Interactive, st.Task.Prompt, subject.Ignored{}
		case o.Asked == nil: // errand's review was requested, which has no text
			o.Action, t.Actor, t.why = subject.ActionReviewRequested, st.Task.Actor, subject.Ignored{}
		}
	}
	t.About = o
	return t, nil
}

// labeled submits the review of a fork's pull request that was given the approving label. The permission of the person
// is checked before the run. The payload has the head at the time of the label.
func (i *interpreter) labeled(ctx context.Context, d delivery) (response string, err error) {
	e := d.pull
	if !subject.IsLabel(e.GetLabel().GetName(), i.gate.ForkLabel) || !hub.IsFork(e.GetPullRequest()) {
		return "", subject.IgnoreQuietly("The label has no meaning here.")
	}
	t, err := i.reviewOf(ctx, d)
	if err != nil {
		return "", err
	}
	if t.why != (subject.Ignored{}) {
		return "", t.why
	}
	t.About.ApprovedBy = e.GetSender().GetLogin()
	return i.submitApproved(ctx, t, t.Pull.GetUpdatedAt().Time)
}

// sameLabel is the most by which the times differ that an event and a poll have for one label: the event has the time
// of the pull request's last change, in whole seconds.
const sameLabel = 2 * time.Second

// submitApproved submits the review of a fork's head that a person has approved with the label, at that time. Its ID
// follows from the label and that time, so that an event and a poll that run at once submit one task if they have the
// same time. Later ones find the label in the state.
func (i *interpreter) submitApproved(ctx context.Context, t candidate, at time.Time) (response string, err error) {
	head, by := t.About.Head, t.About.ApprovedBy
	label := head + " " + by
	p, err := i.memory.State(ctx, t.About.Ref)
	if err == nil && p.Label == label && at.Sub(p.Started) <= sameLabel {
		err = subject.Ignore("The label was handled before.")
	}
	if err != nil {
		return "", err
	}
	t.ID = tasks.NewID(at, sourceName, fmt.Sprintf("label-%d-%s-%s", t.About.Number, hub.ShortSHA(head), by))
	if t.Draft, err = i.settings.ApplyTo(ctx, t.Draft); err != nil {
		return "", err
	}
	var receipt tasks.Receipt
	sender := tasks.Sender{Source: sourceName, Account: by}
	err = i.desk.As(ctx, sender, "approve the fork of "+t.About.String(), t.ID,
		func(ctx context.Context) (_ bool, err error) {
			receipt, err = t.Submit(ctx, i.desk)
			return receipt.New, err
		})
	if err != nil {
		return "", err
	}
	err = i.memory.ChangeState(ctx, t.About.Ref, func(p *subject.State) error {
		if !at.Before(p.Started) {
			p.Started, p.Label = at, label
		}
		if p.Head == head || recordUpdateTime(p, t.Pull.GetUpdatedAt().Time) == nil {
			p.Head, p.Base, p.Review = head, t.About.Base, t.ID
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return "Task " + receipt.ID, nil
}

// missedApproval submits the review of a fork's head that a person has given the label since then, unless the head may
// have moved afterwards. Labels until handled have been handled, by an event or a poll.
func (l polledPull) missedApproval(ctx context.Context, t candidate, since, handled time.Time) error {
	label := l.v.p.gate.ForkLabel
	last, err := l.LastEvent(ctx, func(e *github.IssueEvent) bool { return subject.IsLabelling(e, label) })
	at, by := last.GetCreatedAt().Time, last.GetActor()
	if err != nil || at.Before(since) || !at.After(handled) {
		return err
	}
	may := l.v.p.gate.MayCommand(by.GetLogin(), by.GetType() == "Bot")
	if !may.Allowed || unwanted(l.pr, by.GetLogin(), t.me) != "" {
		return nil
	}
	// The label may be newer than the list of pull requests. If it is for another head, the next poll finds it.
	_, now, err := l.ReachPull(ctx, l.Ref)
	if err != nil || now.GetHead().GetSHA() != l.o.Head || subject.MovedSince(now, at) {
		return err
	}
	t.Actor, t.About.ApprovedBy = by.GetLogin(), cmp.Or(by.GetLogin(), subject.Ghost)
	_, err = l.v.p.submitApproved(ctx, t, at)
	if _, ok := errors.AsType[subject.Ignored](err); ok {
		return nil // its event has brought it
	}
	return err
}
