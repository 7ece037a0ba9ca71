package github

import (
	"cmp"
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
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
)

// api reads pull requests and repositories. Its errors are in the form that tasks expect. It is safe for concurrent
// use.
type api struct {
	forge    *hub.Forge
	now      func() time.Time
	patience patience
}

// client returns the client for a task's repository.
func (a api) client(ctx context.Context, o origin) (*github.Client, error) {
	return a.forge.Client(ctx, o.Repo, o.Installation)
}

// reportError wraps an error of a report. It turns a rate limit into an *tasks.ErrLater.
func (a api) reportError(what string, err error) error {
	return tasks.FromForge(a.forge.RateLimit(what, err))
}

// unposted says what an error of GitHub means for a final message. Only a conversation that does not exist any more is
// final: a right may be granted, and an installation resumed. What GitHub hides from errand looks the same as what is
// gone, so the repository must be visible.
func (a api) unposted(ctx context.Context, o origin, what string, err error) error {
	failed := &tasks.UnpostedError{Why: hub.Complaint(err), Err: a.reportError(what, err)}
	code := hub.StatusCode(err)
	if code == http.StatusGone || code == http.StatusNotFound && a.sees(ctx, o) {
		failed.Why, failed.Final = "its conversation does not exist any more", true
	}
	return failed
}

// sees reports whether errand has access to a repository now: an answer that is some seconds old does not count.
func (a api) sees(ctx context.Context, o origin) bool {
	gh, err := a.client(ctx, o)
	if err != nil {
		return false
	}
	owner, name := o.path()
	_, _, err = gh.Repositories.Get(ctx, owner, name)
	return err == nil
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

// currentPull returns the pull request of a task as it is now, and the client for it.
func (a api) currentPull(ctx context.Context, o origin) (*github.Client, *github.PullRequest, error) {
	gh, err := a.client(ctx, o)
	if err != nil {
		return nil, nil, a.briefError("reach "+o.String(), err)
	}
	owner, name := o.path()
	pr, _, err := gh.PullRequests.Get(ctx, owner, name, o.Number)
	if err != nil {
		return nil, nil, a.briefError("read "+o.String(), err)
	}
	return gh, pr, nil
}

// currentIssue returns the issue of a task as it is now, and the client for it. The address of a transferred issue
// leads to another one, whose readers may be others.
func (a api) currentIssue(ctx context.Context, o origin) (*github.Client, *github.Issue, error) {
	gh, err := a.client(ctx, o)
	if err != nil {
		return nil, nil, a.briefError("reach "+o.String(), err)
	}
	owner, name := o.path()
	issue, _, err := gh.Issues.Get(ctx, owner, name, o.Number)
	switch {
	case hub.StatusCode(err) == http.StatusGone:
		return nil, nil, &tasks.InputError{Sentence: issueEnds[actionDeleted]}
	case err != nil:
		return nil, nil, a.briefError("read "+o.String(), err)
	case issue.GetNumber() != o.Number || o.Issue != 0 && issue.GetID() != o.Issue:
		return nil, nil, &tasks.InputError{Sentence: issueEnds["transferred"]}
	}
	return gh, issue, nil
}

// notLinked returns an *tasks.InputError if the description of someone's open pull request says that it closes an
// issue. It reads only the newest ones.
func (a api) notLinked(ctx context.Context, gh *github.Client, o origin) error {
	what := "look for pull requests for " + o.String()
	me, err := a.forge.Login(ctx)
	if err != nil {
		return a.briefError(what, err)
	}
	owner, name := o.path()
	list, _, err := gh.PullRequests.List(ctx, owner, name,
		&github.PullRequestListOptions{State: "open", ListOptions: github.ListOptions{PerPage: 100}})
	if err != nil {
		return a.briefError(what, err)
	}
	closes := regexp.MustCompile(fmt.Sprintf(`(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:(?:%[1]s)?#|https?://\S+/%[1]s/issues/)%[2]d\b`,
		regexp.QuoteMeta(o.Repo), o.Number))
	for _, pr := range list {
		if pr.GetUser().GetLogin() != me && closes.MatchString(untrusted.Visible(pr.GetBody())) {
			const why = "Pull request #%d says that it closes this issue. To have me work on it anyway, comment `%s`."
			return &tasks.InputError{Sentence: fmt.Sprintf(why, pr.GetNumber(), cmdFix)}
		}
	}
	return nil
}

// ownPull finds errand's open pull request of a branch. It returns an ignored if no pull request has this head.
func (a api) ownPull(ctx context.Context, o origin, branch, head string) (*github.PullRequest, error) {
	gh, err := a.client(ctx, o)
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
func (a api) fileOf(ctx context.Context, gh *github.Client, o origin, branch, path string) (text string, err error) {
	owner, name := o.path()
	at := &github.RepositoryContentGetOptions{}
	if branch != "" {
		at.Ref = "refs/heads/" + branch
	}
	file, _, _, err := gh.Repositories.GetContents(ctx, owner, name, path, at)
	what := fmt.Sprintf("read %s of %s", path, o.Repo)
	if hub.StatusCode(err) == http.StatusNotFound {
		return "", nil
	}
	if err != nil {
		return "", a.briefError(what, err)
	}
	switch {
	case file == nil: // a directory
		return "", nil
	case file.GetEncoding() == "none":
		return "", &tasks.InputError{Sentence: path + " of " + o.Repo + " is too large."}
	}
	if text, err = file.GetContent(); err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return text, nil
}

// changedSince reports whether a file may differ between an earlier commit and the head. If the earlier commit is
// unknown, it is "", and the file may differ.
func (a api) changedSince(ctx context.Context, gh *github.Client, o origin, path, earlier string) (bool, error) {
	if earlier == "" || earlier == o.Head {
		return earlier == "", nil
	}
	owner, name := o.path()
	var blobs [2]string
	for i, commit := range []string{earlier, o.Head} {
		file, _, _, err := gh.Repositories.GetContents(ctx, owner, name, path,
			&github.RepositoryContentGetOptions{Ref: commit})
		if hub.Permanent(err) { // such as a file that is not there
			return true, nil
		} else if err != nil {
			return true, fmt.Errorf("read %s of %s: %w", path, o.Repo, err)
		}
		blobs[i] = file.GetSHA()
	}
	return blobs[0] != blobs[1], nil
}

// ciStatus reads the checks of a head.
func (a api) ciStatus(ctx context.Context, o origin, head string) (forge.CIStatus, error) {
	ci, err := a.forge.CIStatusFor(ctx, o.Repo, o.Installation, head)
	return ci, tasks.FromForge(err)
}

// conflicts returns the key for the conflicts of a head with its base: after one attempt, one of the two has to move
// before the next. The base SHA in a pull request itself is that of its last push, so the branch is read.
func (a api) conflicts(
	ctx context.Context, gh *github.Client, o origin, pr *github.PullRequest,
) (key string, err error) {
	owner, name := o.path()
	base, _, err := gh.Repositories.GetBranch(ctx, owner, name, pr.GetBase().GetRef(), 0)
	if err != nil {
		return "", fmt.Errorf("read branch %s: %w", pr.GetBase().GetRef(), err)
	}
	return "conflict " + pr.GetHead().GetSHA() + " " + base.GetCommit().GetSHA(), nil
}

// labelledBy returns who last added a label to a pull request, or ghost if unknown. Lists and pull requests do not
// contain this.
func (a api) labelledBy(ctx context.Context, gh *github.Client, o origin, label string) (login string, err error) {
	last, err := a.lastEvent(ctx, gh, o, func(e *github.IssueEvent) bool { return isLabelling(e, label) })
	return cmp.Or(last.GetActor().GetLogin(), ghost), err
}

func isLabelling(e *github.IssueEvent, label string) bool {
	return e.GetEvent() == actionLabeled && isLabel(e.GetLabel().GetName(), label)
}

// lastEvent returns the newest wanted event in the history of a pull request or an issue, or nil.
func (a api) lastEvent(
	ctx context.Context, gh *github.Client, o origin, wanted func(*github.IssueEvent) bool,
) (last *github.IssueEvent, err error) {
	owner, name := o.path()
	opt := &github.ListOptions{PerPage: 100}
	same := func(e *github.IssueEvent) *github.IssueEvent { return e }
	for e, err := range hub.Pages(opt, same, func() ([]*github.IssueEvent, *github.Response, error) {
		return gh.Issues.ListIssueEvents(ctx, owner, name, o.Number, opt)
	}) {
		if err != nil {
			return nil, a.briefError("read the events of "+o.String(), err)
		}
		if wanted(e) {
			last = e
		}
	}
	return last, nil
}

// changed lists the files of a pull request, including old names of moved files. Beyond a thousand files it returns
// nil, because no one lists that many in the settings.
func (a api) changed(ctx context.Context, gh *github.Client, o origin) ([]string, error) {
	var all []string
	n := 0
	for f, err := range a.files(ctx, gh, o) {
		if err != nil {
			return nil, a.briefError("read the files of "+o.String(), err)
		}
		if n++; n > 1000 {
			return nil, nil
		}
		all = append(all, f.GetFilename())
		if old := f.GetPreviousFilename(); old != "" {
			all = append(all, old)
		}
	}
	return all, nil
}

// remarks iterates over remarks of one kind, oldest first. An error ends the iteration.
type remarks = iter.Seq2[remark, error]

// own iterates over those remarks that are errand's. Others may copy the marks by which errand finds its own.
func (a api) own(ctx context.Context, list remarks) remarks {
	return func(yield func(remark, error) bool) {
		me, err := a.forge.Login(ctx)
		if err != nil {
			yield(remark{}, err)
			return
		}
		for r, err := range list {
			if (err != nil || r.author == me) && !yield(r, err) {
				return
			}
		}
	}
}

// comments iterates over the comments of a conversation that were written or edited since then.
func (a api) comments(ctx context.Context, gh *github.Client, o origin, since time.Time) remarks {
	owner, name := o.path()
	opt := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 100}}
	if !since.IsZero() {
		opt.Since = &since
	}
	return hub.Pages(&opt.ListOptions, fromIssueComment, func() ([]*github.IssueComment, *github.Response, error) {
		return gh.Issues.ListComments(ctx, owner, name, o.Number, opt)
	})
}

// lineComments iterates over the comments on lines written or edited since then.
func (a api) lineComments(ctx context.Context, gh *github.Client, o origin, since time.Time) remarks {
	owner, name := o.path()
	opt := &github.PullRequestListCommentsOptions{Since: since, ListOptions: github.ListOptions{PerPage: 100}}
	return hub.Pages(&opt.ListOptions, fromLine, func() ([]*github.PullRequestComment, *github.Response, error) {
		return gh.PullRequests.ListComments(ctx, owner, name, o.Number, opt)
	})
}

// reviews iterates over the bodies of all reviews.
func (a api) reviews(ctx context.Context, gh *github.Client, o origin) remarks {
	owner, name := o.path()
	opt := &github.ListOptions{PerPage: 100}
	return hub.Pages(opt, fromReview, func() ([]*github.PullRequestReview, *github.Response, error) {
		return gh.PullRequests.ListReviews(ctx, owner, name, o.Number, opt)
	})
}

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

// files iterates over the changed files of a pull request in GitHub's order, at most 3,000.
func (a api) files(ctx context.Context, gh *github.Client, o origin) iter.Seq2[*github.CommitFile, error] {
	owner, name := o.path()
	opt := &github.ListOptions{PerPage: 100}
	same := func(f *github.CommitFile) *github.CommitFile { return f }
	return hub.Pages(opt, same, func() ([]*github.CommitFile, *github.Response, error) {
		return gh.PullRequests.ListFiles(ctx, owner, name, o.Number, opt)
	})
}

// replyOnLine answers the first comment of a thread on a line. go-github's own call sends the answer to where new
// comments are made, which GitHub's description allows only with a commit and a path.
func replyOnLine(ctx context.Context, gh *github.Client, o origin, comment int64, body string) error {
	owner, name := o.path()
	path := fmt.Sprintf("repos/%s/%s/pulls/%d/comments/%d/replies", owner, name, o.Number, comment)
	req, err := gh.NewRequest(http.MethodPost, path, map[string]string{"body": body})
	if err != nil {
		return fmt.Errorf("reply to comment %d: %w", comment, err)
	}
	_, err = gh.Do(ctx, req, nil)
	return err
}
