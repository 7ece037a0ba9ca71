package tasks

import (
	"context"
)

// Reviewer has a source's reviews of pull requests, for the console. Its methods are called in front doors. They
// must not wait for other services.
type Reviewer interface {
	// Review returns the result of an ended review, or nil if the task is no review with findings.
	Review(ctx context.Context, t Task, e Ending) (*ReviewResult, error)
	// Reported returns the same without Findings, by the ending alone: lists have many reviews.
	Reported(t Task, e Ending) (*ReviewResult, error)
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

// ReviewResult is the result of a review, with all findings on its pull request as they are now.
type ReviewResult struct {
	Head     string // the reviewed commit, abbreviated
	URL      string // of the pull request
	Summary  string // Markdown
	Reported int    // how many findings this review reported
	Findings []Finding
}

// Finding is one problem with a change. Texts are Markdown.
type Finding struct {
	ID       string
	Severity string // critical, major or minor
	Status   string // open, fixed, dismissed or outdated
	Answered bool   // a person has replied
	New      bool   // this review found it
	Here     bool   // Line is a line in this review's head
	First    string // the commit that it was found in, abbreviated
	Last     string // the commit that it was last seen or fixed in

	Path            string // empty: the change as a whole
	Line, StartLine int    // 0: the file as a whole; StartLine is 0 for a single line
	Removed         bool   // the lines are in the old version
	Claim, Evidence string
	Suggestion      string // code that replaces the lines
	Original        string // the lines, if there is a suggestion
	URL             string // of its comment or line on the forge
}
