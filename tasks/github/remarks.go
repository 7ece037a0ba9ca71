package github

import (
	"context"
	"iter"
	"time"

	"github.com/google/go-github/v60/github"
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
	return paged(&opt.ListOptions, fromIssueComment, func() ([]*github.IssueComment, *github.Response, error) {
		return gh.Issues.ListComments(ctx, owner, name, o.Number, opt)
	})
}

// lines lists the comments on lines written or edited since then.
func (s *Source) lines(ctx context.Context, gh *github.Client, o origin, since time.Time) remarks {
	owner, name := o.path()
	opt := &github.PullRequestListCommentsOptions{Since: since, ListOptions: github.ListOptions{PerPage: 100}}
	return paged(&opt.ListOptions, fromLine, func() ([]*github.PullRequestComment, *github.Response, error) {
		return gh.PullRequests.ListComments(ctx, owner, name, o.Number, opt)
	})
}

// reviews lists the bodies of all reviews.
func (s *Source) reviews(ctx context.Context, gh *github.Client, o origin) remarks {
	owner, name := o.path()
	opt := &github.ListOptions{PerPage: 100}
	return paged(opt, fromReview, func() ([]*github.PullRequestReview, *github.Response, error) {
		return gh.PullRequests.ListReviews(ctx, owner, name, o.Number, opt)
	})
}

// files lists what a pull request changes, in the order of GitHub: 3,000 files at most.
func (s *Source) files(ctx context.Context, gh *github.Client, o origin) iter.Seq2[*github.CommitFile, error] {
	owner, name := o.path()
	opt := &github.ListOptions{PerPage: 100}
	same := func(f *github.CommitFile) *github.CommitFile { return f }
	return paged(opt, same, func() ([]*github.CommitFile, *github.Response, error) {
		return gh.PullRequests.ListFiles(ctx, owner, name, o.Number, opt)
	})
}

// paged goes through the pages of a list.
func paged[T, V any](opt *github.ListOptions, read func(T) V, list func() ([]T, *github.Response, error)) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for {
			page, resp, err := list()
			if err != nil {
				var none V
				yield(none, err)
				return
			}
			for _, one := range page {
				if !yield(read(one), nil) {
					return
				}
			}
			if resp.NextPage == 0 {
				return
			}
			opt.Page = resp.NextPage
		}
	}
}
