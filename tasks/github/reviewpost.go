package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/review"
	"github.com/errand-fleet/errand/tasks/github/settings"
	"github.com/errand-fleet/errand/tasks/github/subject"
)

// closeReview posts the findings, then the summary comment, and then completes the indicator, which links to them. So a
// complete indicator means that everything is posted, or that GitHub refuses it, which the indicator says. After any
// error the next attempt finds what this one has posted.
func (r *report) closeReview(ctx context.Context, e tasks.Ending) error {
	if e.Found {
		return nil
	}
	if at := r.indicator.Finished(); at.After(e.Retried) && at.Before(e.At.Truncate(time.Second)) {
		r.log.Warn("verdict skipped: one is posted for an ending that is missing in Redis", "ended", at)
		return nil
	}
	result, err := r.postFindings(ctx, e)
	if err != nil {
		return r.ReportError("post findings", err)
	}
	failed := r.say(ctx, e, result)
	if failed != nil && !hub.Permanent(failed) {
		return failed
	}
	if failed != nil && e.Kind == tasks.Answered {
		result.verdict = verdictOf(tasks.Ending{
			Kind:   tasks.Failed,
			Reason: "GitHub does not let errand comment. The answer is in the run's log.", At: e.At,
		})
		result.verdict.State = hub.StatusError
	}
	if err := r.indicator.Finish(ctx, result.verdict); hub.Permanent(err) {
		r.log.Warn("end check", "err", err)
	} else if err != nil {
		return cmp.Or(failed, r.ReportError("end report", err))
	}
	return failed
}

// say posts the summary comment and, after a refusal, the answer to the comment that requested the review.
func (r *report) say(ctx context.Context, e tasks.Ending, result outcome) error {
	if err := r.comment(ctx, result); err != nil {
		return r.Unposted(ctx, "post review", err)
	}
	return r.explainRefusal(ctx, e)
}

// explainRefusal answers the comment that requested a review, if it was refused: the check of a commit is not where its
// author looks.
func (r *report) explainRefusal(ctx context.Context, e tasks.Ending) error {
	if e.Kind != tasks.Refused || r.o.Asked == nil {
		return nil
	}
	return r.answerRequest(ctx, e)
}

// postFindings posts the agent's findings on their lines, if any, and returns the content of the comment and indicator.
func (r *report) postFindings(ctx context.Context, e tasks.Ending) (outcome, error) {
	answer, ok := r.answer(e)
	if !ok {
		return r.recordTextOutcome(ctx, r.textOutcome(e))
	}
	var err error
	if r.o, err = reviewsOf(r.by.memory).asBriefed(ctx, r.task, r.o); err != nil {
		return outcome{}, err
	}
	limits, unknown, err := r.limits(ctx)
	if err != nil {
		return outcome{}, err
	}
	ours := markOf(r.task, r.o, e)
	plan, err := r.selectFindings(ctx, ours, answer)
	if err != nil {
		return outcome{}, err
	}
	plan, moved, err := r.postPlan(ctx, plan, limits, ours)
	if hub.Permanent(err) {
		r.log.Error("post findings", "err", err) // the comment has all of them
	} else if err != nil {
		return outcome{}, err
	}
	result := r.findingsOutcome(e, plan, answer.Summary, moved)
	result.text += settingsErrors(unknown)
	if moved != "" {
		return result, nil // the next review reports the findings that still apply
	}
	state, err := r.remember(ctx, ours, plan, result.verdict)
	result.text += pausing(state)
	return result, err
}

// recordTextOutcome completes the outcome of a task without findings. A head that was refused because the same changes
// were reviewed keeps that verdict.
func (r *report) recordTextOutcome(ctx context.Context, result outcome) (outcome, error) {
	if !slices.Contains([]tasks.EndingKind{tasks.Answered, tasks.Refused, tasks.Withdrawn}, result.ending.Kind) {
		return result, nil
	}
	var err error
	if r.o, err = reviewsOf(r.by.memory).asBriefed(ctx, r.task, r.o); err != nil {
		return outcome{}, err
	}
	if result.ending.Kind == tasks.Answered {
		state, err := reviewsOf(r.by.memory).reviewed(ctx, r.task, r.o, result.verdict)
		result.text += pausing(state)
		return result, err
	}
	state, err := r.by.memory.State(ctx, r.o.Ref)
	if state.HasReviewed(r.o) && state.Verdict != (subject.SavedVerdict{}) {
		result.verdict = restoredVerdict(state.Verdict, result.ending)
	}
	return result, err
}

// postPlan submits a plan's findings for lines of the diff as one review with a comment each. It returns the plan as
// posted. If the pull request has a new head, postPlan returns that head and posts nothing. It finds an existing review
// by its mark.
//
// GitHub refuses a whole review for one comment outside the diff, which can change before the review arrives. After one
// refusal postPlan reads the diff again; after another it puts the findings into the review's text.
func (r *report) postPlan(
	ctx context.Context, p review.Plan, limits review.Limits, m mark,
) (placed review.Plan, moved string, err error) {
	unplaced := p.Place(nil, limits)
	if len(p.Inline) == 0 {
		moved, err = r.newHead(ctx)
		return unplaced, moved, err
	}
	posted, found, err := r.findReview(ctx, m)
	if err != nil || found {
		return unplaced.Posted(posted), "", err
	}
	for range 2 {
		diff, err := r.diff(ctx, p.Inline)
		if err != nil {
			return unplaced, "", err
		}
		if moved, err = r.newHead(ctx); err != nil || moved != "" {
			return unplaced, moved, err
		}
		placed = p.Place(diff, limits)
		if len(placed.Inline) == 0 {
			return placed, "", r.announce(ctx, placed, m)
		}
		err = r.submit(ctx, m.findings()+placed.Intro(r.page()), placed.Inline)
		if err == nil {
			return placed, "", nil
		}
		if !rejected(err) {
			return unplaced, "", err
		}
		r.log.Warn("post findings on lines", "err", err)
	}
	if err := r.submit(ctx, m.findings()+placed.Whole(r.page()), nil); err != nil {
		return unplaced, "", err
	}
	return placed, "", nil
}

// announce posts new findings that are only in the summary as a review without comments, because an edited summary
// notifies no one. A new summary does notify people.
func (r *report) announce(ctx context.Context, p review.Plan, m mark) error {
	if len(p.Summary) == 0 {
		return nil
	}
	old, err := r.summaries(ctx)
	if err != nil {
		return fmt.Errorf("list comments of %s: %w", r.o, err)
	}
	// written for this ending: after this review, or the first of all
	if first, ok := old[1]; !ok || first.mark.compare(m) == 0 {
		return nil
	}
	return r.submit(ctx, m.findings()+p.Aside(r.page()), nil)
}

// rejected reports whether an error means that GitHub rejects the content of a review.
func rejected(err error) bool {
	return hub.Permanent(err) && hub.StatusCode(err) == http.StatusUnprocessableEntity
}

// submit creates a review with the event COMMENT: errand leaves approval to people.
func (r *report) submit(ctx context.Context, body string, findings []review.Finding) error {
	ask := &github.PullRequestReviewRequest{CommitID: &r.o.Head, Body: &body, Event: new("COMMENT")}
	for _, f := range findings {
		c := &github.DraftReviewComment{
			Path: &f.Path, Line: &f.Line, Side: new(string(f.Side)), Body: new(review.Comment(f)),
		}
		if f.StartLine > 0 {
			c.StartLine, c.StartSide = &f.StartLine, c.Side
		}
		ask.Comments = append(ask.Comments, c)
	}
	if _, _, err := r.GH.PullRequests.CreateReview(ctx, r.Owner, r.Name, r.o.Number, ask); err != nil {
		return fmt.Errorf("submit review of %s: %w", r.o, err)
	}
	return nil
}

// findReview finds the review with a mark, and the IDs of the findings in it.
func (r *report) findReview(ctx context.Context, m mark) (posted map[string]bool, found bool, err error) {
	v, found, err := r.Find(ctx, r.Reviews(ctx), m.findings())
	if err != nil {
		return nil, false, fmt.Errorf("list reviews of %s: %w", r.o, err)
	}
	if !found {
		return nil, false, nil
	}
	posted, err = r.findingsOf(ctx, v.ID, v.Body)
	return posted, true, err
}

// findingsOf returns the IDs of the findings in one of errand's reviews: those in its comments and in its text.
func (r *report) findingsOf(ctx context.Context, id int64, body string) (map[string]bool, error) {
	posted := map[string]bool{}
	for _, f := range review.FindingsIn(body) {
		posted[f] = true
	}
	// 100 comments are more than the limits ever allow
	page, _, err := r.GH.PullRequests.ListReviewComments(ctx, r.Owner, r.Name, r.o.Number, id,
		&github.ListOptions{PerPage: 100})
	if err != nil {
		return nil, fmt.Errorf("list comments of a review of %s: %w", r.o, err)
	}
	for _, c := range page {
		if f, ok := review.FindingOf(c.GetBody()); ok {
			posted[f] = true
		}
	}
	return posted, nil
}

// diff reads the changes in the files of some findings, against the merge base and without the patches of large files.
// It stops when it has all of them.
func (r *report) diff(ctx context.Context, findings []review.Finding) (review.Diff, error) {
	missing := map[string]bool{}
	for _, f := range findings {
		missing[f.Path] = true
	}
	delete(missing, "") // findings of the change as a whole
	d := review.Diff{}
	if len(missing) == 0 {
		return d, nil
	}
	for f, err := range r.Files(ctx) {
		if err != nil {
			return nil, fmt.Errorf("list files of %s: %w", r.o, err)
		}
		if !missing[f.GetFilename()] {
			continue
		}
		d[f.GetFilename()] = review.ParsePatch(f.GetPatch())
		if delete(missing, f.GetFilename()); len(missing) == 0 {
			break
		}
	}
	return d, nil
}

// newHead returns the pull request's head if it is no longer the reviewed one.
func (r *report) newHead(ctx context.Context) (string, error) {
	pr, err := r.Pull(ctx)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", r.o, err)
	}
	if head := pr.GetHead().GetSHA(); head != r.o.Head {
		return head, nil
	}
	return "", nil
}

// findReviewed finds the final message of a review: its comment, or its indicator if that is complete, because a later
// review has replaced its comment, or it had none.
func (r *report) findReviewed(ctx context.Context, after time.Time) (*tasks.Ending, error) {
	all, err := r.summaries(ctx)
	if err != nil {
		return nil, err
	}
	if m := all[1].mark; m.task == r.task.ID && time.UnixMicro(m.at).After(after) {
		return &tasks.Ending{Kind: m.ending, At: time.UnixMicro(m.at).UTC()}, nil
	}
	l, err := r.openIndicator(ctx)
	if err != nil {
		return nil, err
	}
	if at := l.Finished(); at.After(after) {
		return &tasks.Ending{At: at.UTC()}, nil
	}
	return nil, nil
}

func saveVerdict(v hub.Verdict) subject.SavedVerdict {
	return subject.SavedVerdict{Conclusion: v.Conclusion, Title: v.Title, Line: v.Line}
}

// restoredVerdict returns the verdict for a later head whose review was refused because it has the same changes.
func restoredVerdict(k subject.SavedVerdict, e tasks.Ending) hub.Verdict {
	return hub.Verdict{
		Conclusion: k.Conclusion, Title: k.Title, Line: k.Line,
		Summary: markdown.Unping(untrusted.Line(e.Sentence(), 500)), At: e.At,
	}
}

// verdictOf returns the verdict on an ending without findings.
func verdictOf(e tasks.Ending) hub.Verdict {
	v := hub.Verdict{Conclusion: conclusion(e.Kind), At: e.At}
	if e.Kind == tasks.Answered {
		v.Title, v.Line = "Reviewed", "Reviewed, see the conversation"
		v.Summary = "The review is in the conversation of the pull request.\n\n" + markdown.Unping(e.Footer())
		return v
	}
	v.Title, v.Line = "Not reviewed", "Not reviewed: "+markdown.Unping(untrusted.Line(e.Sentence(), 500))
	v.Summary = v.Line
	return v
}

// statusOf returns the state of a commit status for an ending. A commit without a review never looks like one that was
// reviewed, unless the repository's settings want no review. Where another task continues the review of the same head,
// the commit waits for that one; one of a later head needs nothing more.
func statusOf(e tasks.Ending, head string) string {
	switch {
	case e.Kind == tasks.Superseded && strings.HasPrefix(e.Reason, supersededBy+hub.ShortSHA(head)):
		return hub.StatusPending
	case e.Kind == tasks.Answered, e.Kind == tasks.Superseded, strings.HasPrefix(e.Reason, settings.Reason):
		return ""
	}
	return hub.StatusError
}

// conclusion returns the conclusion for an ending without findings. It is never one that GitHub counts as failed, such
// as timed_out: a problem of errand must not fail the change. It is not success
// either, which would mean that there is nothing to read.
func conclusion(k tasks.EndingKind) string {
	if k == tasks.Cancelled {
		return "cancelled"
	}
	return "neutral"
}
