package tasks

import (
	"context"
)

// Reviewer has a source's reviews of pull requests, for the console and the API. Its methods are called in front doors.
// They must not wait for other services.
type Reviewer interface {
	// Reported returns the result of an ended review by its ending alone, because lists have many reviews: without Text
	// and Waits. It returns nil if the task is no review with findings.
	Reported(t Task, e Ending) *ReviewResult
	// Result returns the whole result, or nil.
	Result(ctx context.Context, t Task, e Ending) (*ReviewResult, error)
	// Acceptance returns what people have done with the findings in a repository, by kind.
	Acceptance(ctx context.Context, repo string) ([]Acceptance, error)
}

// Acceptance counts what people have done with the findings of one kind.
type Acceptance struct {
	Kind      string `json:"kind"`
	Fixed     int    `json:"fixed"`
	Dismissed int    `json:"dismissed"` // by people with write access, without a change
	Ignored   int    `json:"ignored"`   // the pull request was merged without either
}

// ReviewResult is the result of a review.
type ReviewResult struct {
	Head     string // the reviewed commit, abbreviated
	URL      string // of the pull request
	Reported int    // how many findings the agent had; not all need be posted
	Text     string // what was posted, as Markdown
	Waits    bool   // it is the last one, and has findings that people have to do something about
}
