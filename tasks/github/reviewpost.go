package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks/github/review"
)

// post submits a plan's findings for lines of the diff as one review with a comment each. It returns the plan as
// posted. If the pull request has a new head, post returns that head and posts nothing. It finds an existing review by
// its mark.
//
// GitHub refuses a whole review for one comment outside the diff, which can change before the review arrives. After one
// refusal post reads the diff again; after another it puts the findings into the review's text.
func (r *report) post(
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
		if !refused(err) {
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
	old, err := r.comments(ctx)
	if err != nil {
		return fmt.Errorf("list comments of %s: %w", r.origin, err)
	}
	// written for this ending: after this review, or the first of all
	if first, ok := old[1]; !ok || first.mark.compare(m) == 0 {
		return nil
	}
	return r.submit(ctx, m.findings()+p.Aside(r.page()), nil)
}

// refused reports whether an error means that GitHub rejects the content of a review.
func refused(err error) bool {
	return hub.Permanent(err) && hub.StatusCode(err) == http.StatusUnprocessableEntity
}

// submit creates a review with the event COMMENT: errand leaves approval to people.
func (r *report) submit(ctx context.Context, body string, findings []review.Finding) error {
	ask := &github.PullRequestReviewRequest{CommitID: &r.origin.Head, Body: &body, Event: new("COMMENT")}
	for _, f := range findings {
		c := &github.DraftReviewComment{
			Path: &f.Path, Line: &f.Line, Side: new(string(f.Side)), Body: new(review.Comment(f)),
		}
		if f.StartLine > 0 {
			c.StartLine, c.StartSide = &f.StartLine, c.Side
		}
		ask.Comments = append(ask.Comments, c)
	}
	owner, name := r.origin.path()
	if _, _, err := r.gh.PullRequests.CreateReview(ctx, owner, name, r.origin.Number, ask); err != nil {
		return fmt.Errorf("submit review of %s: %w", r.origin, err)
	}
	return nil
}

// findReview finds the review with a mark, and the IDs of the findings in it.
func (r *report) findReview(ctx context.Context, m mark) (posted map[string]bool, found bool, err error) {
	for v, err := range r.by.api.own(ctx, r.by.api.reviews(ctx, r.gh, r.origin)) {
		if err != nil {
			return nil, false, fmt.Errorf("list reviews of %s: %w", r.origin, err)
		}
		if body := strings.ReplaceAll(v.body, "\r\n", "\n"); strings.HasPrefix(body, m.findings()) {
			posted, err := r.findingsOf(ctx, v.ID, body)
			return posted, true, err
		}
	}
	return nil, false, nil
}

// findingsOf returns the IDs of the findings in one of errand's reviews: those in its comments and in its text.
func (r *report) findingsOf(ctx context.Context, id int64, body string) (map[string]bool, error) {
	posted := map[string]bool{}
	for _, f := range review.FindingsIn(body) {
		posted[f] = true
	}
	owner, name := r.origin.path()
	// 100 comments are more than the limits ever allow
	page, _, err := r.gh.PullRequests.ListReviewComments(ctx, owner, name, r.origin.Number, id,
		&github.ListOptions{PerPage: 100})
	if err != nil {
		return nil, fmt.Errorf("list comments of a review of %s: %w", r.origin, err)
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
	for f, err := range r.by.api.files(ctx, r.gh, r.origin) {
		if err != nil {
			return nil, fmt.Errorf("list files of %s: %w", r.origin, err)
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
	owner, name := r.origin.path()
	pr, _, err := r.gh.PullRequests.Get(ctx, owner, name, r.origin.Number)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", r.origin, err)
	}
	if head := pr.GetHead().GetSHA(); head != r.origin.Head {
		return head, nil
	}
	return "", nil
}
