package github

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/review"
)

// Review implements [tasks.Reviewer]. It reads the ledger and asks GitHub nothing.
func (s *Source) Review(ctx context.Context, t tasks.Task, e tasks.Ending) (*tasks.ReviewResult, error) {
	answer, ok := readAnswer(e, s.log)
	if t.Kind != kindReview || !ok {
		return nil, nil
	}
	o, err := originOf(t)
	if err != nil {
		return nil, err
	}
	ledger, err := s.memory.ledgerMemo(o).Load(ctx)
	if err != nil {
		return nil, err
	}
	v := &tasks.ReviewResult{Head: hub.ShortSHA(o.Head), URL: o.URL, Summary: answer.Summary}
	for _, k := range ledger.History(o.Head, answer.Findings) {
		v.Findings = append(v.Findings, tasks.Finding{
			ID: k.ID, Severity: string(k.Severity), Status: string(k.Status), New: k.First == o.Head, Here: k.First == o.Head || k.Last == o.Head,
			First: hub.ShortSHA(k.First), Last: hub.ShortSHA(k.Last), Answered: k.Answered,
			Path: k.Path, Line: k.Line, StartLine: k.StartLine, Removed: k.Side == review.Left,
			Claim: k.Claim, Evidence: k.Evidence, Suggestion: k.Suggestion, Original: k.Original, URL: o.finding(k),
		})
	}
	return v, nil
}

// finding returns the web address of a finding: its comment, its line, or the pull request.
func (o origin) finding(k review.Known) string {
	repo, _, _ := strings.Cut(o.URL, "/pull/")
	switch {
	case k.Comment != 0:
		return fmt.Sprintf("%s#discussion_r%d", o.URL, k.Comment)
	case k.Path == "" || k.Side == review.Left:
		return o.URL + "/files"
	}
	line := ""
	switch {
	case k.StartLine > 0:
		line = fmt.Sprintf("#L%d-L%d", k.StartLine, k.Line)
	case k.Line > 0:
		line = fmt.Sprintf("#L%d", k.Line)
	}
	return repo + "/blob/" + cmp.Or(k.Last, o.Head) + (&url.URL{Path: "/" + k.Path}).EscapedPath() + line
}
