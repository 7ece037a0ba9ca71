package review

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/github/subject"
)

// Submitter submits reviews to a desk.
type Submitter struct {
	*Reviews
	desk *desk.Desk
}

// To returns what submits reviews to a desk.
func (r *Reviews) To(d *desk.Desk) Submitter { return Submitter{r, d} }

// Candidate is a review before it is submitted, if it is wanted.
type Candidate struct {
	subject.Draft
	Me  string          // errand's login; "" if GitHub did not return it
	Why subject.Ignored // why no review is wanted; zero if one is
}

// SupersededBy begins the reason of a review that ends because another one continues it.
const SupersededBy = "Superseded by "

// IsContinued reports whether an ending has such a reason.
func IsContinued(e tasks.Ending) bool {
	return e.Kind == tasks.Superseded && strings.HasPrefix(e.Reason, SupersededBy)
}

// reviewThread returns the thread of a pull request's reviews.
func reviewThread(o subject.Origin) string { return "github/" + o.String() + "/review" }

// Of returns the review task for an event, with the reason if no review is wanted.
func (r Submitter) Of(ctx context.Context, id string, e *github.PullRequestEvent) (Candidate, error) {
	action := e.GetAction()
	pr, repo := e.GetPullRequest(), e.GetRepo().GetFullName()
	me, err := r.api.Forge.Login(ctx)
	if err != nil {
		return Candidate{}, err
	}
	o := subject.OfPull(repo, pr)
	o.Installation, o.Action = e.GetInstallation().GetID(), action
	t := r.Task(tasks.NewID(pr.GetUpdatedAt().Time, subject.Source, id), e.GetSender().GetLogin(), pr, o)
	t.Me = me
	if action == "synchronize" {
		t.NotBefore = r.api.Now().Add(r.quiet)
	}
	requested := action == subject.ActionReviewRequested
	asked := requested || action == subject.ActionLabeled
	if requested && (me == "" || e.GetRequestedReviewer().GetLogin() != me) {
		t.Why = subject.IgnoreQuietly("The review was requested from someone else.")
	} else if why := Unwanted(pr, t.Actor, me, asked); why != "" {
		t.Why = subject.Ignore(why)
	} else if s := e.GetSender(); asked && !r.gate.MayCommand(s.GetLogin(), s.GetType() == "Bot").Allowed {
		// a bot's requests are not counted here, so this would never end
		t.Why = subject.Ignore("A bot requested it.")
	}
	return t, nil
}

// Task returns the task of reviewing a pull request.
func (r *Reviews) Task(id, actor string, pr *github.PullRequest, o subject.Origin) Candidate {
	return Candidate{Draft: subject.Draft{Task: tasks.Task{
		ID: id, Source: subject.Source, Kind: subject.KindReview, Thread: reviewThread(o), Class: tasks.Review,
		Profile: subject.ProfileOf(pr, agent.Read),
		Repo:    o.Repo, Ref: o.Head, Actor: actor,
		Prompt: fmt.Sprintf("Review pull request #%d of %s: %s", o.Number, o.Repo, o.Title),
	}, About: o, Pull: pr}}
}

// Unwanted returns why a pull request is not reviewed, or "". It is called for the event and again before the run. A
// review that someone else has asked for also covers drafts, errand's own pull requests and those of bots.
func Unwanted(pr *github.PullRequest, actor, me string, asked bool) string {
	switch {
	case pr.GetMerged():
		return "The pull request was merged."
	case pr.GetState() == "closed":
		return "The pull request was closed."
	case !asked && pr.GetDraft():
		return "The pull request is a draft."
	case !asked && pr.GetUser().GetType() == "Bot":
		return "The pull request was opened by a bot."
	case me != "" && (actor == me || !asked && pr.GetUser().GetLogin() == me):
		return "The pull request or the change is errand's own."
	}
	return ""
}

// submit submits the review of a pull request's head with its base, unless it has one, and ends the reviews of
// others. The same head and base give the same task, for every event and poll.
func (r Submitter) submit(ctx context.Context, t Candidate) (response string, err error) {
	o := t.About
	if !tasks.ValidID(t.ID) {
		return subject.Submitted(t.Submit(ctx, r.desk)) // the desk reports the error; nothing is recorded
	}
	why := SupersededBy + hub.ShortSHA(o.Head) + "."
	err = r.memory.ChangeState(ctx, o.Ref, func(p *subject.State) (err error) {
		if p.Head == o.Head && !p.IsAt(o) {
			why = SupersededBy + hub.ShortSHA(o.Head) + " onto " + untrusted.Line(o.Base, 100) + "."
		}
		t.ID, err = recordHead(p, t.ID, o, t.Pull.GetUpdatedAt().Time)
		return err
	})
	if err != nil {
		return "", err
	}
	// First: it may have inherited requests from the others.
	if response, err = subject.Submitted(t.Submit(ctx, r.desk)); err != nil {
		return "", err
	}
	return response, r.desk.Supersede(ctx, t.Thread, why, otherVersion(o, t.ID))
}

// A push makes the review of the earlier head pointless. Requests for that review carry over to the next one: the
// review of the new head belongs to the requester, has their text, and adds the reaction to their comment. On a pull
// request from a fork the approval was for the earlier head, so nothing carries over, but the review of that head still
// ends.

// Replace submits the review of a pull request's head in place of the reviews of earlier heads. One that is not
// wanted is submitted if it inherits a request.
func (r Submitter) Replace(ctx context.Context, t Candidate) (response string, err error) {
	if err := r.endForkReviews(ctx, t); err != nil {
		return "", err
	}
	draft, wanted, err := r.inheritRequests(ctx, t)
	if err != nil {
		return "", err
	}
	if t.Why != (subject.Ignored{}) && !wanted {
		return "", t.Why
	}
	if t.Draft, err = r.settings.ApplyTo(ctx, draft); err != nil {
		return "", err
	}
	return r.submit(ctx, t)
}

// Again is Replace for one more review of a head, unless one of the same head and base waits or runs.
func (r Submitter) Again(ctx context.Context, t Candidate) (response string, err error) {
	open, err := r.desk.Open(ctx, t.Thread)
	if err != nil {
		return "", err
	}
	isOther := otherVersion(t.About, "")
	for _, st := range open {
		if st.Task.Kind == subject.KindReview && st.Task.ID != t.ID && !isOther(st.Task) {
			return "Task " + st.Task.ID + " reviews it already.", nil
		}
	}
	return r.Replace(ctx, t)
}

// endForkReviews ends the reviews of other heads of a pull request from a fork, and those with other bases: the new
// head may not be approved, and the approved one is gone.
func (r Submitter) endForkReviews(ctx context.Context, t Candidate) error {
	if !hub.IsFork(t.Pull) {
		return nil
	}
	o := t.About
	current, why := "", ""
	err := r.memory.ChangeState(ctx, o.Ref, func(p *subject.State) error {
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
	return r.desk.Supersede(ctx, t.Thread, why, otherVersion(o, current))
}

// inheritRequests gives a review the requests for unfinished reviews of other heads. wanted reports that it has got
// one, whatever else is against the review. A push by errand ends no review. Requests by people without permission are
// dropped, because they would get the next review refused, and so are requests by bots, which were counted already.
func (r Submitter) inheritRequests(ctx context.Context, t Candidate) (d subject.Draft, wanted bool, _ error) {
	d = t.Draft
	if hub.IsFork(t.Pull) || t.Pull.GetState() == "closed" || t.Actor == t.Me {
		return d, false, nil
	}
	open, err := r.desk.Open(ctx, t.Thread)
	if err != nil {
		return subject.Draft{}, false, err
	}
	p, err := r.memory.State(ctx, t.About.Ref)
	if err != nil {
		return subject.Draft{}, false, err
	}
	current := ""
	if p.IsAt(t.About) {
		current = p.Review
	}
	isOther := otherVersion(t.About, current)
	for _, st := range open {
		before, err := subject.Of(st.Task)
		if err != nil || !isOther(st.Task) {
			continue
		}
		if !before.ByPerson() || before.ByBot() || r.gate.MayNot(ctx, t.About.Ref, st.Task.Actor) {
			d = inheritSpots(d, before)
		} else if before.Asked != nil {
			d, wanted = inheritComment(d, st.Task, before), true
		} else if d.About.Asked == nil { // a comment counts more than a review request, which has no text
			d, wanted = inheritReviewRequest(d, st.Task), true
		}
	}
	return d, wanted, nil
}

// inheritSpots returns a review that also shows its state at the comments of an earlier one.
func inheritSpots(d subject.Draft, before subject.Origin) subject.Draft {
	d.About.Also = append(d.About.Also, before.Spots()...)
	return d
}

// inheritComment returns a review that was requested by the comment that requested an earlier one. The latest text
// counts, and the widest scope.
func inheritComment(d subject.Draft, earlier tasks.Task, before subject.Origin) subject.Draft {
	d.About.Also = append(d.About.Spots(), before.Also...)
	d.About.Asked = before.Asked
	d.About.Full = d.About.Full || before.Full
	d.Actor = earlier.Actor
	d.Class = tasks.Interactive
	d.Prompt = earlier.Prompt
	return d
}

// inheritReviewRequest returns a review that was requested from errand as an earlier one was.
func inheritReviewRequest(d subject.Draft, earlier tasks.Task) subject.Draft {
	d.About.Action = subject.ActionReviewRequested
	d.Actor = earlier.Actor
	return d
}

// End ends the reviews of a pull request that was closed or became a draft, and returns why.
func (r Submitter) End(ctx context.Context, o subject.Origin, pr *github.PullRequest) (why string, err error) {
	err = r.memory.ChangeState(ctx, o.Ref, func(p *subject.State) error {
		p.Review = ""
		return recordUpdateTime(p, pr.GetUpdatedAt().Time)
	})
	if err != nil {
		return "", err
	}
	why = Unwanted(pr, "", "", false)
	isReview := func(t tasks.Task) bool { return t.Kind == subject.KindReview }
	return why, r.desk.Supersede(ctx, reviewThread(o), why, isReview)
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
