package review

import (
	"testing"
	"time"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks/github/subject"
)

// Of a pull request with many reviews a push is not reviewed any more, unless a person asks.
func TestAutomaticReviewsAreLimited(t *testing.T) {
	t.Parallel()
	p := subject.State{Reviews: subject.MaxReviews}
	if _, err := recordHead(&p, "id", subject.Origin{Head: "b"}, time.Now()); err == nil {
		t.Error("one more by itself")
	}
	if _, err := recordHead(&p, "id", subject.Origin{Head: "b", Action: "review_requested"}, time.Now()); err != nil {
		t.Error("one more for a person:", err)
	}
}

// A requested review is never one of the automatic ones.
func TestWantedReviewsAreNotCounted(t *testing.T) {
	t.Parallel()
	for _, o := range []subject.Origin{
		{Action: "review_requested"},
		{Action: "labeled", ApprovedBy: "ben"},
		{Action: "asked", Asked: new(subject.Request)},
	} {
		o.Head = "b"
		var p subject.State
		if recordReview(&p, "id", o, hub.Verdict{}); p.Reviews != 0 || p.LastReviewed != "b" {
			t.Errorf("%s: %+v", o.Action, p)
		}
	}
	var p subject.State
	if recordReview(&p, "id", subject.Origin{Head: "b"}, hub.Verdict{}); p.Reviews != 1 {
		t.Errorf("%+v", p)
	}
}
