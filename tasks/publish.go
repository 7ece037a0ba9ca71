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

// Work is what a run left in its clone, on a branch of the remote.
type Work struct {
	Repo   string `json:"repo"`   // owner/name
	Branch string `json:"branch"` // of the thread
	Commit string `json:"commit"` // the latest of errand's there
	Base   string `json:"base"`   // branch it is to be merged into
	Title  string `json:"title"`  // one line

	Verification *Verification `json:"verification,omitempty"` // nil: the repository has no verification commands
}

// Published is what became of the work of a run.
type Published struct {
	Work
	PullRequest forge.PullRequestRef `json:"pull_request,omitzero"`
	Problem     string               `json:"problem,omitempty"` // one sentence: what could not be done, and what to do about it
	Due         bool                 `json:"due,omitempty"`     // it is pushed, and the pull request is yet to be opened or brought up to date
}

// Note is a line of plain text that tells people what was published; empty when nothing was to be.
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
