package github

import (
	"context"

	"github.com/errand-fleet/errand/tasks/github/autofix"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// checkEvent holds the fields of the four events about checks.
type checkEvent struct {
	Action string `json:"action"`
	Repo   struct {
		FullName string `json:"full_name"`
	} `json:"repository"`
	Install struct {
		ID int64 `json:"id"`
	} `json:"installation"`

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
	Suite      struct {
		Branch string `json:"head_branch"`
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

// checked submits a fix of failed checks on errand's pull request.
func (i *interpreter) checked(ctx context.Context, d delivery) (response string, err error) {
	e := d.check
	if err := i.worksOn(e.Repo.FullName); err != nil {
		return "", err
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
