package github

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/autofix"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// checkEvent holds the fields of the four events about checks.
type checkEvent struct {
	Action string `json:"action"`
	Repo   struct {
		FullName string `json:"full_name"`
		URL      string `json:"html_url"`
	} `json:"repository"`
	Install struct {
		ID int64 `json:"id"`
	} `json:"installation"`
	Sender github.User `json:"sender"`

	CheckRun    checkOf `json:"check_run"`
	CheckSuite  checkOf `json:"check_suite"`
	WorkflowRun checkOf `json:"workflow_run"`

	// The event "status" has its fields at the top level.
	SHA      string `json:"sha"`
	State    string `json:"state"`
	Context  string `json:"context"`
	Branches []struct {
		Name string `json:"name"`
	} `json:"branches"`
}

// checkOf is one check, or a suite of checks of one commit.
type checkOf struct {
	Name       string `json:"name"`
	SHA        string `json:"head_sha"`
	Branch     string `json:"head_branch"`
	Conclusion string `json:"conclusion"`
	// when a suite was changed, such as by its being requested again
	Updated time.Time `json:"updated_at"`
	Suite   struct {
		Branch  string    `json:"head_branch"`
		Updated time.Time `json:"updated_at"`
	} `json:"check_suite"`
}

// check returns the check, or the suite of checks, that the event is about.
func (e *checkEvent) check() checkOf {
	for _, c := range []checkOf{e.CheckRun, e.CheckSuite, e.WorkflowRun} {
		if c.SHA != "" {
			return c
		}
	}
	return checkOf{SHA: e.SHA, Name: e.Context, Conclusion: e.State}
}

// The actions of checks besides their ends: a commit was pushed, and a person runs a check again.
const (
	actionRequested   = "requested"
	actionRerequested = "rerequested"
)

// checked submits a fix of failed checks on errand's pull request, or the review whose check is run again, or passes
// the commits of a merge queue.
func (i *interpreter) checked(ctx context.Context, d delivery) (response string, err error) {
	e := d.check
	if err := i.worksOn(e.Repo.FullName); err != nil {
		return "", err
	}
	switch d.action {
	case actionRerequested:
		return i.rerequested(ctx, d)
	case actionRequested:
		return i.passQueued(ctx, d)
	}
	c := e.check()
	branches := []string{c.Branch, c.Suite.Branch}
	for _, b := range e.Branches {
		branches = append(branches, b.Name)
	}
	return i.fixes.Failed(ctx, i.desk, autofix.Check{
		Ref: thread.Ref{Repo: e.Repo.FullName, Installation: e.Install.ID}, Event: d.event,
		Name: c.Name, Conclusion: c.Conclusion, Head: c.SHA, Branches: branches,
	})
}

// rerequested submits the reviews of the open pull requests with the commit whose check a person runs again. GitHub
// tells an App of its own checks only.
func (i *interpreter) rerequested(ctx context.Context, d delivery) (response string, err error) {
	e, c := d.check, d.check.check()
	if !i.gate.MayCommand(e.Sender.GetLogin(), e.Sender.GetType() == "Bot").Allowed {
		return "", subject.Ignore("A bot requested it.")
	}
	t, err := i.api.Reach(ctx, thread.Ref{Repo: e.Repo.FullName, Installation: e.Install.ID})
	if err != nil {
		return "", err
	}
	at := cmp.Or(c.Suite.Updated, c.Updated, i.now())
	var said []string
	opt := &github.PullRequestListOptions{State: "open", ListOptions: github.ListOptions{PerPage: 100}}
	for pr, err := range hub.Pages(&opt.ListOptions, hub.Same, func() ([]*github.PullRequest, *github.Response, error) {
		return t.GH.PullRequests.List(ctx, t.Owner, t.Name, opt)
	}) {
		if err != nil {
			return "", fmt.Errorf("find the pull requests of %s: %w", hub.ShortSHA(c.SHA), err)
		}
		if pr.GetHead().GetSHA() != c.SHA {
			continue
		}
		o := subject.OfPull(t.Repo, pr)
		o.Installation, o.Action = t.Installation, subject.ActionReviewRequested
		id := tasks.NewID(at, sourceName, fmt.Sprintf("%s-%d", d.id, o.Number))
		one, err := i.reviews.Again(ctx, i.reviews.Task(id, e.Sender.GetLogin(), pr, o))
		if err != nil {
			return "", err
		}
		said = append(said, one)
	}
	if said == nil {
		return "", subject.Ignore("It is the head of no open pull request.")
	}
	return strings.Join(said, " "), nil
}

// queueBranches is the prefix of the branches on which GitHub's merge queue tries pull requests together.
const queueBranches = "gh-readonly-queue/"

// passQueued ends errand's check of a commit that a merge queue has made: the pull requests in it have their own, and
// where the check is required, GitHub waits for it there, too.
func (i *interpreter) passQueued(ctx context.Context, d delivery) (response string, err error) {
	e, c := d.check, d.check.check()
	if !strings.HasPrefix(c.Branch, queueBranches) {
		return "", subject.IgnoreQuietly("It is on no branch of a merge queue.")
	}
	t, err := i.api.Reach(ctx, thread.Ref{Repo: e.Repo.FullName, Installation: e.Install.ID})
	if err != nil {
		return "", err
	}
	indicator, err := i.api.Forge.OpenIndicator(ctx, t.GH, hub.IndicatorTarget{
		Repo: t.Repo, Commit: c.SHA, Task: "merge-queue", URL: e.Repo.URL + "/commit/" + c.SHA,
	})
	if err != nil {
		return "", err
	}
	return "Passed.", indicator.Finish(ctx, hub.Verdict{
		Conclusion: "skipped", Title: "Not reviewed in the merge queue", At: i.now(),
		Summary: "Reviews are of pull requests, and have their own checks.",
	})
}
