package github

import "fmt"

// byPerson reports whether somebody wanted the task: in so many words, by the label, or by requesting a review.
func (o origin) byPerson() bool {
	return o.Asked != nil || o.ApprovedBy != "" || o.Action == requestedReview
}

// requestedReview is the action by which somebody requests our review. GitHub lets triagers do so as well.
const requestedReview = "review_requested"

// pausing is what the summary says below all else, from the last review on that comes without anybody asking.
func (p *prState) pausing() string {
	if p.Reviews < maxReviews {
		return ""
	}
	return fmt.Sprintf("\n\nAfter %d reviews, pushes are not reviewed any more. Comment `/review` for another review, or `/resume` to have one of every push again.", p.Reviews)
}
