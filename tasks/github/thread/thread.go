// Package thread reads and writes the conversations of pull requests and issues: what people said there, and what
// errand has posted. Every text that errand posts begins with a mark, which GitHub does not show, and is found again by
// it. So it is posted once, even if GitHub's response is lost, or another worker posts it as well after a crash. Only
// errand's own remarks count, because others may copy the marks.
//
// The package knows no kinds of tasks, settings or permissions: tasks/github decides what is said, and where.
package thread

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/forge"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
)

// Client reaches conversations. Its errors are in the form that tasks expect. It is safe for concurrent use.
type Client struct {
	Forge *hub.Forge
	Now   func() time.Time
	Log   *slog.Logger

	ConsoleURL string // base URL of /tasks/{id}; "": posts have no link to the run
}

// ReportError wraps an error of a report. It turns a rate limit into an *tasks.ErrLater.
func (c Client) ReportError(what string, err error) error {
	return tasks.FromForge(c.Forge.RateLimit(what, err))
}

// BriefError wraps an error of a brief. In addition it turns a permanent failure into an *tasks.InputError.
func (c Client) BriefError(what string, err error) error {
	return tasks.FromForge(c.Forge.Explain(what, err))
}

// RetryAfter is hub.RetryAfter, also for an error that BriefError or ReportError has wrapped.
func (c Client) RetryAfter(err error) (time.Duration, bool) {
	if later, ok := errors.AsType[*tasks.ErrLater](err); ok {
		return later.At.Sub(c.Now()), true
	}
	return hub.RetryAfter(err)
}

// Refuse returns the error for what errand does not do, with the reason for people.
func Refuse(why string) error { return &tasks.InputError{Sentence: why} }

// Ref identifies a pull request or an issue, or a whole repository if Number is 0.
type Ref struct {
	Repo         string `json:"repo"` // owner/name
	Number       int    `json:"number"`
	Installation int64  `json:"installation,omitempty"`
}

func (r Ref) String() string { return fmt.Sprintf("%s#%d", r.Repo, r.Number) }

// Thread is the conversation of a pull request or an issue, or those of a whole repository. It is safe for concurrent
// use.
type Thread struct {
	Client
	Ref
	GH          *github.Client
	Owner, Name string // of the repository
}

// Reach returns a conversation. It reads nothing.
func (c Client) Reach(ctx context.Context, r Ref) (Thread, error) {
	gh, err := c.Forge.Client(ctx, r.Repo, r.Installation)
	if err != nil {
		return Thread{}, err
	}
	owner, name, _ := strings.Cut(r.Repo, "/")
	return Thread{Client: c, Ref: r, GH: gh, Owner: owner, Name: name}, nil
}

// ReachPull returns the conversation of a pull request for a brief, and the pull request as it is now.
func (c Client) ReachPull(ctx context.Context, r Ref) (Thread, *github.PullRequest, error) {
	t, err := c.Reach(ctx, r)
	if err != nil {
		return Thread{}, nil, c.BriefError("reach "+r.String(), err)
	}
	pr, err := t.Pull(ctx)
	if err != nil {
		return Thread{}, nil, c.BriefError("read "+r.String(), err)
	}
	return t, pr, nil
}

// Pull reads the pull request.
func (t Thread) Pull(ctx context.Context) (*github.PullRequest, error) {
	pr, _, err := t.GH.PullRequests.Get(ctx, t.Owner, t.Name, t.Number)
	return pr, err
}

// Files iterates over the changed files of a pull request in GitHub's order, at most 3,000.
func (t Thread) Files(ctx context.Context) iter.Seq2[*github.CommitFile, error] {
	opt := &github.ListOptions{PerPage: 100}
	return hub.Pages(opt, hub.Same, func() ([]*github.CommitFile, *github.Response, error) {
		return t.GH.PullRequests.ListFiles(ctx, t.Owner, t.Name, t.Number, opt)
	})
}

// LastEvent returns the newest wanted event in the history of a pull request or an issue, or nil.
func (t Thread) LastEvent(
	ctx context.Context, wanted func(*github.IssueEvent) bool,
) (last *github.IssueEvent, err error) {
	opt := &github.ListOptions{PerPage: 100}
	for e, err := range hub.Pages(opt, hub.Same, func() ([]*github.IssueEvent, *github.Response, error) {
		return t.GH.Issues.ListIssueEvents(ctx, t.Owner, t.Name, t.Number, opt)
	}) {
		if err != nil {
			return nil, t.BriefError("read the events of "+t.String(), err)
		}
		if wanted(e) {
			last = e
		}
	}
	return last, nil
}

// File returns the content of a file on a branch, or on the default branch if branch is "". It returns "" if the file
// does not exist or is a directory, and an *tasks.InputError if the file is larger than GitHub's limit.
func (t Thread) File(ctx context.Context, branch, path string) (text string, err error) {
	at := &github.RepositoryContentGetOptions{}
	if branch != "" {
		at.Ref = "refs/heads/" + branch
	}
	file, _, _, err := t.GH.Repositories.GetContents(ctx, t.Owner, t.Name, path, at)
	what := fmt.Sprintf("read %s of %s", path, t.Repo)
	if hub.StatusCode(err) == http.StatusNotFound {
		return "", nil
	}
	if err != nil {
		return "", t.BriefError(what, err)
	}
	switch {
	case file == nil: // a directory
		return "", nil
	case file.GetEncoding() == "none":
		return "", Refuse(path + " of " + t.Repo + " is too large.")
	}
	if text, err = file.GetContent(); err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return text, nil
}

// CIStatus reads the checks of a head.
func (t Thread) CIStatus(ctx context.Context, head string) (forge.CIStatus, error) {
	ci, err := t.Forge.CIStatusFor(ctx, t.Repo, t.Installation, head)
	return ci, tasks.FromForge(err)
}
