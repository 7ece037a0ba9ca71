package github

import (
	"context"
	"strings"

	"github.com/errand-fleet/errand/tasks/github/review"
)

// Replies to /dismiss.
const (
	unknownFinding = "Unknown finding. The summary of the review lists the findings with their IDs."
	whichFinding   = "Give the ID of a finding from the summary of the review: `/dismiss 0123456789ab`."
)

// dismiss dismisses a finding, as resolving its thread does. It is for findings without a thread.
func (i *interpreter) dismiss(ctx context.Context, h remarkEvent) (note string, ok bool, err error) {
	id, _, _ := strings.Cut(h.said.rest, "\n")
	if id = strings.TrimSpace(id); !review.IsFinding(id) {
		return whichFinding, false, nil
	}
	ok, err = i.reviews.Dismiss(ctx, h.Ref, id, h.Author)
	if err == nil && !ok {
		note = unknownFinding
	}
	return note, ok, err
}
