package review

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks/github/findings"
)

// postPlan submits a plan's findings for lines of the diff as one review with a comment each. It returns the plan as
// posted. If the pull request has a new head, postPlan returns that head and posts nothing. It finds an existing review
// by its mark.
//
// GitHub refuses a whole review for one comment outside the diff, which can change before the review arrives. After one
// refusal postPlan reads the diff again; after another it puts the findings into the review's text.
func (r *Report) postPlan(
	ctx context.Context, p findings.Plan, limits findings.Limits, m mark,
) (placed findings.Plan, moved string, err error) {
	unplaced := p.Place(nil, limits)
	if len(p.Inline)+len(p.Dropped) == 0 {
		moved, err = r.newHead(ctx)
		return unplaced, moved, err
	}
	posted, found, err := r.findReview(ctx, m)
	if err != nil || found {
		return unplaced.Posted(posted), "", err
	}
	for range 2 {
		diff, err := r.diff(ctx, slices.Concat(p.Inline, p.Dropped))
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
		err = r.submit(ctx, m.findings()+placed.Intro(pageOf(r.task, r.o)), placed.Inline)
		if err == nil {
			return placed, "", nil
		}
		if !rejected(err) {
			return unplaced, "", err
		}
		r.log.Warn("post findings on lines", "err", err)
	}
	if err := r.submit(ctx, m.findings()+placed.Whole(pageOf(r.task, r.o)), nil); err != nil {
		return unplaced, "", err
	}
	return placed, "", nil
}

// announce posts new findings that are only in the summary as a review without comments, because an edited summary
// notifies no one. A new summary does notify people.
func (r *Report) announce(ctx context.Context, p findings.Plan, m mark) error {
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
	return r.submit(ctx, m.findings()+p.Aside(pageOf(r.task, r.o)), nil)
}

// rejected reports whether an error means that GitHub rejects the content of a review.
func rejected(err error) bool {
	return hub.Permanent(err) && hub.StatusCode(err) == http.StatusUnprocessableEntity
}

// submit creates a review with the event COMMENT: errand leaves approval to people.
func (r *Report) submit(ctx context.Context, body string, list []findings.Finding) error {
	ask := &github.PullRequestReviewRequest{CommitID: &r.o.Head, Body: &body, Event: new("COMMENT")}
	for _, f := range list {
		c := &github.DraftReviewComment{
			Path: &f.Path, Line: &f.Line, Side: new(string(f.Side)), Body: new(findings.Comment(f)),
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
func (r *Report) findReview(ctx context.Context, m mark) (posted map[string]bool, found bool, err error) {
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
func (r *Report) findingsOf(ctx context.Context, id int64, body string) (map[string]bool, error) {
	posted := map[string]bool{}
	for _, f := range findings.FindingsIn(body) {
		posted[f] = true
	}
	// 100 comments are more than the limits ever allow
	page, _, err := r.GH.PullRequests.ListReviewComments(ctx, r.Owner, r.Name, r.o.Number, id,
		&github.ListOptions{PerPage: 100})
	if err != nil {
		return nil, fmt.Errorf("list comments of a review of %s: %w", r.o, err)
	}
	for _, c := range page {
		if f, ok := findings.FindingOf(c.GetBody()); ok {
			posted[f] = true
		}
	}
	return posted, nil
}

// diff reads the changes in the files of some findings, against the merge base and without the patches of large files.
// It stops when it has all of them.
func (r *Report) diff(ctx context.Context, list []findings.Finding) (findings.Diff, error) {
	missing := map[string]bool{}
	for _, f := range list {
		missing[f.Path] = true
	}
	delete(missing, "") // findings of the change as a whole
	d := findings.Diff{}
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
		d[f.GetFilename()] = findings.ParsePatch(f.GetPatch())
		if delete(missing, f.GetFilename()); len(missing) == 0 {
			break
		}
	}
	return d, nil
}

// newHead returns the pull request's head if it is no longer the reviewed one.
func (r *Report) newHead(ctx context.Context) (string, error) {
	pr, err := r.Pull(ctx)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", r.o, err)
	}
	if head := pr.GetHead().GetSHA(); head != r.o.Head {
		return head, nil
	}
	return "", nil
}
