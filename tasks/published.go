package tasks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/forge"
)

// Publications returns the published works of an ending, not copies of them. The main repository's comes first.
func (e *Ending) Publications() []*Published {
	if e.Published == nil {
		return nil
	}
	return append([]*Published{e.Published}, e.Also...)
}

// PullRequests returns the publications of an ending that have a pull request.
func (e *Ending) PullRequests() []*Published {
	return slices.DeleteFunc(e.Publications(), func(p *Published) bool { return p.PullRequest.Number == 0 })
}

// Beside returns the pull requests that were published together with one, as "owner/name#3".
func (e *Ending) Beside(p *Published) (list []string) {
	for _, other := range e.PullRequests() {
		if other != p {
			list = append(list, other.Name())
		}
	}
	return list
}

// Name returns the pull request as "owner/name#3".
func (p *Published) Name() string { return fmt.Sprintf("%s#%d", p.Repo, p.PullRequest.Number) }

// Work is the work of a run on a branch of the remote.
type Work struct {
	Repo   string `json:"repo"`            // owner/name
	Branch string `json:"branch"`          // the thread's branch
	Commit string `json:"commit"`          // errand's latest commit there
	Base   string `json:"base"`            // branch to merge it into
	Title  string `json:"title"`           // one line
	Fixes  int    `json:"fixes,omitempty"` // the number of the issue that it resolves; 0: none

	Style forge.Style `json:"style,omitzero"` // of the pull request

	Verification *Verification `json:"verification,omitempty"` // nil: the repository has no verification commands
}

// Published is the result of publishing a run's work.
type Published struct {
	Work
	PullRequest forge.PullRequestRef `json:"pull_request,omitzero"`
	Problem     string               `json:"problem,omitempty"`  // one sentence: what failed, and what to do about it
	Due         bool                 `json:"due,omitempty"`      // the branch is pushed, but the pull request is not
	Together    []string             `json:"together,omitempty"` // pull requests in its description: "owner/name#3"
}

// Note returns plain text about the published work, a line for each repository; empty if there was nothing to publish.
func (e Ending) Note() string { return strings.Join(e.Notes(), "\n") }

// Notes returns what Note says about each repository.
func (e Ending) Notes() (notes []string) {
	for i, p := range e.Publications() {
		said := "The changes are on branch " + p.Branch + " of " + p.Repo + "."
		switch {
		case p.PullRequest.URL != "":
			said = fmt.Sprintf("Pull request %s: %s", p.Name(), p.PullRequest.URL)
		case p.Problem != "":
			said = p.Problem
		}
		changed := ""
		if i == 0 {
			changed = e.Changed.String()
		}
		for _, more := range []string{changed, p.Verification.Line()} {
			if more != "" {
				said += " · " + more
			}
		}
		notes = append(notes, said)
	}
	return notes
}
