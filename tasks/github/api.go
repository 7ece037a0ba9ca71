package github

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/forge"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
)

// api reads pull requests and repositories. Its errors are in the form that tasks expect. It is safe for concurrent
// use.
type api struct {
	forge *hub.Forge
	now   func() time.Time
	log   *slog.Logger
}

// reportError wraps an error of a report. It turns a rate limit into an *tasks.ErrLater.
func (a api) reportError(what string, err error) error {
	return tasks.FromForge(a.forge.RateLimit(what, err))
}

// briefError wraps an error of a brief. In addition it turns a permanent failure into an *tasks.InputError.
func (a api) briefError(what string, err error) error {
	return tasks.FromForge(a.forge.Explain(what, err))
}

// retryAfter is hub.RetryAfter, also for an error that briefError or reportError has wrapped.
func (a api) retryAfter(err error) (time.Duration, bool) {
	if later, ok := errors.AsType[*tasks.ErrLater](err); ok {
		return later.At.Sub(a.now()), true
	}
	return hub.RetryAfter(err)
}

// ownPull finds errand's open pull request of a branch. It returns an ignored if no pull request has this head.
func (a api) ownPull(ctx context.Context, o origin, branch, head string) (*github.PullRequest, error) {
	gh, err := a.forge.Client(ctx, o.Repo, o.Installation)
	if err != nil {
		return nil, err
	}
	me, err := a.forge.Login(ctx)
	if err != nil {
		return nil, err
	}
	owner, name := o.path()
	list, _, err := gh.PullRequests.List(ctx, owner, name,
		&github.PullRequestListOptions{State: "open", Head: owner + ":" + branch})
	if err != nil {
		return nil, fmt.Errorf("list pull requests of %s: %w", branch, err)
	}
	for _, pr := range list {
		if pr.GetHead().GetRef() == branch && pr.GetHead().GetSHA() == head && !hub.IsFork(pr) &&
			pr.GetUser().GetLogin() == me {
			return pr, nil
		}
	}
	return nil, ignored{"It is not the head of one of errand's pull requests.", slog.LevelDebug}
}

// fileOf returns the content of a file on a branch, or on the default branch if branch is "". It returns "" if the file
// does not exist or is a directory, and an *tasks.InputError if the file is larger than GitHub's limit.
func (t thread) fileOf(ctx context.Context, branch, path string) (text string, err error) {
	at := &github.RepositoryContentGetOptions{}
	if branch != "" {
		at.Ref = "refs/heads/" + branch
	}
	file, _, _, err := t.gh.Repositories.GetContents(ctx, t.owner, t.name, path, at)
	what := fmt.Sprintf("read %s of %s", path, t.o.Repo)
	if hub.StatusCode(err) == http.StatusNotFound {
		return "", nil
	}
	if err != nil {
		return "", t.briefError(what, err)
	}
	switch {
	case file == nil: // a directory
		return "", nil
	case file.GetEncoding() == "none":
		return "", refuse(path + " of " + t.o.Repo + " is too large.")
	}
	if text, err = file.GetContent(); err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return text, nil
}

// ciStatus reads the checks of a head.
func (a api) ciStatus(ctx context.Context, o origin, head string) (forge.CIStatus, error) {
	ci, err := a.forge.CIStatusFor(ctx, o.Repo, o.Installation, head)
	return ci, tasks.FromForge(err)
}

// remarks iterates over remarks of one kind, oldest first. An error ends the iteration.
type remarks = iter.Seq2[remark, error]

// remarksSince iterates over the remarks on all pull requests and issues of a repository since then, in conversations
// and on lines. It may include remarks from earlier in the same second.
func (a api) remarksSince(
	ctx context.Context, gh *github.Client, repo string, since time.Time,
) iter.Seq2[remarkEvent, error] {
	owner, name := origin{Repo: repo}.path()
	lists := github.ListOptions{PerPage: 100}
	issues := &github.IssueListCommentsOptions{
		Sort: new("created"), Direction: new("asc"), Since: &since, ListOptions: lists,
	}
	pulls := &github.PullRequestListCommentsOptions{Sort: "created", Direction: "asc", Since: since, ListOptions: lists}
	on := func(r remark) remarkEvent {
		number, onIssue := numberOfPage(r.url)
		return remarkEvent{remark: r, repo: repo, number: number, onIssue: onIssue}
	}
	return func(yield func(remarkEvent, error) bool) {
		for _, list := range []iter.Seq2[remarkEvent, error]{
			hub.Pages(&issues.ListOptions, func(c *github.IssueComment) remarkEvent { return on(fromIssueComment(c)) },
				func() ([]*github.IssueComment, *github.Response, error) {
					return gh.Issues.ListComments(ctx, owner, name, 0, issues)
				}),
			hub.Pages(&pulls.ListOptions, func(c *github.PullRequestComment) remarkEvent { return on(fromLine(c)) },
				func() ([]*github.PullRequestComment, *github.Response, error) {
					return gh.PullRequests.ListComments(ctx, owner, name, 0, pulls)
				}),
		} {
			for h, err := range list {
				if !yield(h, err) {
					return
				}
			}
		}
	}
}

// reviewsOf iterates over the reviews of a pull request.
func (a api) reviewsOf(
	ctx context.Context, gh *github.Client, repo string, pr *github.PullRequest,
) iter.Seq2[remarkEvent, error] {
	o := origin{Repo: repo, Number: pr.GetNumber()}
	owner, name := o.path()
	opt := &github.ListOptions{PerPage: 100}
	read := func(v *github.PullRequestReview) remarkEvent {
		return remarkEvent{remark: fromReview(v), repo: repo, number: o.Number, pull: pr, verdict: v.GetState()}
	}
	return hub.Pages(opt, read, func() ([]*github.PullRequestReview, *github.Response, error) {
		return gh.PullRequests.ListReviews(ctx, owner, name, o.Number, opt)
	})
}

var page = regexp.MustCompile(`/(pull|issues)/([0-9]+)#`)

// numberOfPage returns the number of the pull request or issue from a comment's URL.
func numberOfPage(address string) (number int, onIssue bool) {
	m := page.FindStringSubmatch(address)
	if m == nil {
		return 0, false
	}
	n, _ := strconv.Atoi(m[2])
	return n, m[1] == "issues"
}

// refuse returns the error for what errand does not do, with the reason for people.
func refuse(why string) error { return &tasks.InputError{Sentence: why} }
