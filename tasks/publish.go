package tasks

import (
	"context"
	"fmt"

	"github.com/errand-fleet/errand/forge"
)

// Publisher is the part of a [forge.Forge] that a worker needs.
type Publisher interface {
	Name() string
	Publish(ctx context.Context, p forge.Proposal) (forge.PullRequestRef, error)
}

// Work is the work of a run on a branch of the remote.
type Work struct {
	Repo   string `json:"repo"`   // owner/name
	Branch string `json:"branch"` // the thread's branch
	Commit string `json:"commit"` // errand's latest commit there
	Base   string `json:"base"`   // branch to merge it into
	Title  string `json:"title"`  // one line

	Verification *Verification `json:"verification,omitempty"` // nil: the repository has no verification commands
}

// Published is the result of publishing a run's work.
type Published struct {
	Work
	PullRequest forge.PullRequestRef `json:"pull_request,omitzero"`
	Problem     string               `json:"problem,omitempty"` // one sentence: what failed, and what to do about it
	Due         bool                 `json:"due,omitempty"`     // the branch is pushed, and the pull request has to be opened or updated
}

// Note returns a line of plain text about the published work; empty if there was nothing to publish.
func (e Ending) Note() string {
	p := e.Published
	if p == nil {
		return ""
	}
	said := "The changes are on branch " + p.Branch + " of " + p.Repo + "."
	switch {
	case p.PullRequest.URL != "":
		said = fmt.Sprintf("Pull request %s#%d: %s", p.Repo, p.PullRequest.Number, p.PullRequest.URL)
	case p.Problem != "":
		said = p.Problem
	}
	if checks := p.Verification.Line(); checks != "" {
		said += " · " + checks
	}
	return said
}
