package github

import "fmt"

// maxReviews is how many reviews of a pull request there are by themselves; further ones have to be asked for.
const maxReviews = 5

// byPerson reports whether somebody wanted the task, in so many words or by requesting a review.
func (o origin) byPerson() bool { return o.Action == "asked" || o.Action == "review_requested" }

// tired says why there is no review by itself any more, or nothing.
func (p prState) tired(o origin) string {
	if o.byPerson() || p.Reviews < maxReviews {
		return ""
	}
	return fmt.Sprintf("This pull request was reviewed %d times already. Comment `/review` for another review, or `/resume` to have one of every push again.", p.Reviews)
}

// pausing is what the summary says below all else from the last review on that comes by itself.
func (p prState) pausing() string {
	if p.Reviews < maxReviews {
		return ""
	}
	return fmt.Sprintf("\n\nAfter %d reviews, pushes are not reviewed any more. Comment `/review` for another review, or `/resume` to have one of every push again.", p.Reviews)
}
