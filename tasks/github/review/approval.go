package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// sameLabel is the most by which the times differ that an event and a poll have for one label: the event has the time
// of the pull request's last change, in whole seconds.
const sameLabel = 2 * time.Second

// SubmitApproved submits the review of a fork's head that a person has approved with the label, at that time. Its ID
// follows from the label and that time, so that an event and a poll that run at once submit one task if they have the
// same time. Later ones find the label in the state.
func (r Submitter) SubmitApproved(ctx context.Context, t Candidate, at time.Time) (response string, err error) {
	head, by := t.About.Head, t.About.ApprovedBy
	label := head + " " + by
	p, err := r.memory.State(ctx, t.About.Ref)
	if err == nil && p.Label == label && at.Sub(p.Started) <= sameLabel {
		err = subject.Ignore("The label was handled before.")
	}
	if err != nil {
		return "", err
	}
	t.ID = tasks.NewID(at, subject.Source, fmt.Sprintf("label-%d-%s-%s", t.About.Number, hub.ShortSHA(head), by))
	if t.Draft, err = r.settings.ApplyTo(ctx, t.Draft); err != nil {
		return "", err
	}
	var receipt desk.Receipt
	sender := desk.Sender{Source: subject.Source, Account: by}
	err = r.desk.As(ctx, sender, "approve the fork of "+t.About.String(), t.ID,
		func(ctx context.Context) (_ bool, err error) {
			receipt, err = t.Submit(ctx, r.desk)
			return receipt.New, err
		})
	if err != nil {
		return "", err
	}
	err = r.memory.ChangeState(ctx, t.About.Ref, func(p *subject.State) error {
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

// MissedApproval submits the review of a fork's head that a person has given the label since then, unless the head may
// have moved afterwards. Labels until handled have been handled, by an event or a poll.
func (r Submitter) MissedApproval(
	ctx context.Context, where thread.Thread, t Candidate, since, handled time.Time,
) error {
	label := r.gate.ForkLabel
	last, err := where.LastEvent(ctx, func(e *github.IssueEvent) bool { return subject.IsLabelling(e, label) })
	at, by := last.GetCreatedAt().Time, last.GetActor()
	if err != nil || at.Before(since) || !at.After(handled) {
		return err
	}
	may := r.gate.MayCommand(by.GetLogin(), by.GetType() == "Bot")
	if !may.Allowed || Unwanted(t.Pull, by.GetLogin(), t.Me, true) != "" {
		return nil
	}
	// The label may be newer than the list of pull requests. If it is for another head, the next poll finds it.
	_, now, err := where.ReachPull(ctx, where.Ref)
	if err != nil || now.GetHead().GetSHA() != t.About.Head || subject.MovedSince(now, at) {
		return err
	}
	t.Actor, t.About.ApprovedBy = by.GetLogin(), cmp.Or(by.GetLogin(), subject.Ghost)
	_, err = r.SubmitApproved(ctx, t, at)
	if _, ok := errors.AsType[subject.Ignored](err); ok {
		return nil // its event has brought it
	}
	return err
}
