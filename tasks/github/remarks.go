package github

import (
	"context"
	"iter"
	"regexp"
	"strconv"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
)

// The lists of a pull request: its remarks, of each sort oldest first, and its files. An error ends a list.

type remarks = iter.Seq2[remark, error]

// conversation lists the comments written or edited since then.
func (s *Source) conversation(ctx context.Context, gh *github.Client, o origin, since time.Time) remarks {
	owner, name := o.path()
	opt := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 100}}
	if !since.IsZero() {
		opt.Since = &since
	}
	return hub.Pages(&opt.ListOptions, fromIssueComment, func() ([]*github.IssueComment, *github.Response, error) {
		return gh.Issues.ListComments(ctx, owner, name, o.Number, opt)
	})
}

// lines lists the comments on lines written or edited since then.
func (s *Source) lines(ctx context.Context, gh *github.Client, o origin, since time.Time) remarks {
	owner, name := o.path()
	opt := &github.PullRequestListCommentsOptions{Since: since, ListOptions: github.ListOptions{PerPage: 100}}
	return hub.Pages(&opt.ListOptions, fromLine, func() ([]*github.PullRequestComment, *github.Response, error) {
		return gh.PullRequests.ListComments(ctx, owner, name, o.Number, opt)
	})
}

// reviews lists the bodies of all reviews.
func (s *Source) reviews(ctx context.Context, gh *github.Client, o origin) remarks {
	owner, name := o.path()
	opt := &github.ListOptions{PerPage: 100}
	return hub.Pages(opt, fromReview, func() ([]*github.PullRequestReview, *github.Response, error) {
		return gh.PullRequests.ListReviews(ctx, owner, name, o.Number, opt)
	})
}

// remarksSince lists what was said in a repository since then on whatever pull request, in the conversation and on lines: the first so many of
// each. Of the same second there may be what was said before.
func (s *Source) remarksSince(ctx context.Context, gh *github.Client, repo string, since time.Time) iter.Seq2[heard, error] {
	owner, name := origin{Repo: repo}.path()
	lists := github.ListOptions{PerPage: 100}
	issues := &github.IssueListCommentsOptions{Sort: new("created"), Direction: new("asc"), Since: &since, ListOptions: lists}
	pulls := &github.PullRequestListCommentsOptions{Sort: "created", Direction: "asc", Since: since, ListOptions: lists}
	on := func(r remark) heard { return heard{remark: r, repo: repo, number: pullOfPage(r.url)} }
	return func(yield func(heard, error) bool) {
		for _, list := range []iter.Seq2[heard, error]{
			hub.Pages(&issues.ListOptions, func(c *github.IssueComment) heard { return on(fromIssueComment(c)) },
				func() ([]*github.IssueComment, *github.Response, error) {
					return gh.Issues.ListComments(ctx, owner, name, 0, issues)
				}),
			hub.Pages(&pulls.ListOptions, func(c *github.PullRequestComment) heard { return on(fromLine(c)) },
				func() ([]*github.PullRequestComment, *github.Response, error) {
					return gh.PullRequests.ListComments(ctx, owner, name, 0, pulls)
				}),
		} {
			n := 0
			for h, err := range list {
				if n++; n > maxSaidSince {
					break
				}
				if !yield(h, err) {
					return
				}
			}
		}
	}
}

// reviewsOf lists the reviews of a pull request.
func (s *Source) reviewsOf(ctx context.Context, gh *github.Client, repo string, pr *github.PullRequest) iter.Seq2[heard, error] {
	o := origin{Repo: repo, Number: pr.GetNumber()}
	owner, name := o.path()
	opt := &github.ListOptions{PerPage: 100}
	read := func(v *github.PullRequestReview) heard {
		return heard{remark: fromReview(v), repo: repo, number: o.Number, pull: pr, verdict: v.GetState()}
	}
	return hub.Pages(opt, read, func() ([]*github.PullRequestReview, *github.Response, error) {
		return gh.PullRequests.ListReviews(ctx, owner, name, o.Number, opt)
	})
}

// maxSaidSince bounds each of the two.
const maxSaidSince = 1000

var pullPage = regexp.MustCompile(`/pull/([0-9]+)#`)

// pullOfPage is the number of the pull request that the address of a comment is on; 0: it is an issue's.
func pullOfPage(address string) int {
	m := pullPage.FindStringSubmatch(address)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// files lists what a pull request changes, in the order of GitHub: 3,000 files at most.
func (s *Source) files(ctx context.Context, gh *github.Client, o origin) iter.Seq2[*github.CommitFile, error] {
	owner, name := o.path()
	opt := &github.ListOptions{PerPage: 100}
	same := func(f *github.CommitFile) *github.CommitFile { return f }
	return hub.Pages(opt, same, func() ([]*github.CommitFile, *github.Response, error) {
		return gh.PullRequests.ListFiles(ctx, owner, name, o.Number, opt)
	})
}
