package github

import (
	"context"
	"errors"
	"strings"

	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/review"
)

// limits says how much a review may say, and what in the repository's settings means nothing. Where the settings cannot be read for good, the usual
// limits hold.
func (r *report) limits(ctx context.Context) (review.Limits, []string, error) {
	l := review.Limits{Max: 6, Floor: review.Minor}
	c, unknown, err := r.source.settings(ctx, r.gh, r.origin, r.origin.Base)
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		r.log.Warn("review without the repository's settings", "why", input.Sentence)
		return l, nil, nil
	}
	if err != nil {
		return l, nil, err
	}
	if c.Review.MaxFindings > 0 {
		l.Max = c.Review.MaxFindings
	}
	if c.Review.Severity != "" {
		l.Floor = review.Severity(c.Review.Severity)
	}
	return l, unknown, nil
}

// misunderstood is the part of a comment that says what in the repository's settings means nothing.
func misunderstood(unknown []string) string {
	if len(unknown) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\n#### `" + settingsFile + "`\n")
	for _, one := range unknown {
		b.WriteString("\n- " + markdown.NeutralLine(one))
	}
	return b.String()
}
