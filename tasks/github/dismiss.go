package github

import (
	"context"
	"regexp"

	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/review"
)

// What is said of findings that somebody wants ended.
const (
	unknownFinding = "There is no such finding here. The summary of the review names them."
	whichFinding   = "Say which finding, as it stands in the summary of the review: `/dismiss 0123456789ab`."
)

var dismissForm = regexp.MustCompile(`(?m)` + sayDismiss + `[ \t]+([0-9a-f]{12}(?:-[0-9]+)?)\s*$`)

// dismiss ends a finding for good, as resolving its thread does. It is for those that have none.
func (s *Source) dismiss(ctx context.Context, _ *tasks.Desk, h heard) (note string, ok bool, err error) {
	m := dismissForm.FindStringSubmatch(untrusted.Visible(h.body))
	if m == nil {
		return whichFinding, false, nil
	}
	err = s.changeLedger(ctx, h.origin(), func(l *review.Ledger) { ok = l.Dismiss(m[1]) })
	if err == nil && !ok {
		note = unknownFinding
	}
	return note, ok, err
}
