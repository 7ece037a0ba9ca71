package github

import (
	"context"
	"iter"
	"time"

	"github.com/google/go-github/v60/github"
)

// The remarks of a pull request, of each sort oldest first. An error ends a list.

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

// paged goes through the pages of a list.
func paged[T any](opt *github.ListOptions, read func(T) remark, list func() ([]T, *github.Response, error)) remarks {
	return func(yield func(remark, error) bool) {
		for {
			page, resp, err := list()
			if err != nil {
				yield(remark{}, err)
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
