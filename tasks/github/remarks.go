package github

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/untrusted"
)

// The iterators of a pull request: its remarks, each kind oldest first, and its files. An error ends the iteration.

type remarks = iter.Seq2[remark, error]

// conversation iterates over the comments written or edited since then.
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

// lines iterates over the comments on lines written or edited since then.
func (s *Source) lines(ctx context.Context, gh *github.Client, o origin, since time.Time) remarks {
	owner, name := o.path()
	opt := &github.PullRequestListCommentsOptions{Since: since, ListOptions: github.ListOptions{PerPage: 100}}
	return hub.Pages(&opt.ListOptions, fromLine, func() ([]*github.PullRequestComment, *github.Response, error) {
		return gh.PullRequests.ListComments(ctx, owner, name, o.Number, opt)
	})
}

// reviews iterates over the bodies of all reviews.
func (s *Source) reviews(ctx context.Context, gh *github.Client, o origin) remarks {
	owner, name := o.path()
	opt := &github.ListOptions{PerPage: 100}
	return hub.Pages(opt, fromReview, func() ([]*github.PullRequestReview, *github.Response, error) {
		return gh.PullRequests.ListReviews(ctx, owner, name, o.Number, opt)
	})
}

// remarksSince iterates over the remarks on all pull requests of a repository since then, in conversations and on
// lines, up to maxSaidSince of each. It may include remarks from earlier in the same second.
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

// reviewsOf iterates over the reviews of a pull request.
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

// maxSaidSince bounds each of the two lists.
const maxSaidSince = 1000

var pullPage = regexp.MustCompile(`/pull/([0-9]+)#`)

// pullOfPage returns the number of the pull request from a comment's URL, or 0 if the URL is that of an issue.
func pullOfPage(address string) int {
	m := pullPage.FindStringSubmatch(address)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// files iterates over the changed files of a pull request in GitHub's order, at most 3,000.
func (s *Source) files(ctx context.Context, gh *github.Client, o origin) iter.Seq2[*github.CommitFile, error] {
	owner, name := o.path()
	opt := &github.ListOptions{PerPage: 100}
	same := func(f *github.CommitFile) *github.CommitFile { return f }
	return hub.Pages(opt, same, func() ([]*github.CommitFile, *github.Response, error) {
		return gh.PullRequests.ListFiles(ctx, owner, name, o.Number, opt)
	})
}

// Bounds of the remarks in a prompt, the newest first.
const (
	maxRemarks = 50
	maxBatch   = 20_000 // characters of all
	maxRemark  = 10_000 // characters of one
	maxHunk    = 3_000  // characters of the diff above a line, its end
)

// batch holds the remarks on a pull request up to the request, oldest first.
type batch struct {
	me      string
	remarks []remark
	asked   remark // the request; only fields that its event may lack are used
}

// unanswered returns the remarks since the last answered one, and those in the same thread or review as the request.
func (k talk) unanswered(ctx context.Context) (batch, error) {
	before, err := k.memory.cursor(k.o).Load(ctx)
	if err != nil {
		return batch{}, err
	}
	return k.gather(ctx, before.Until, func(b batch, r remark) bool {
		mine := strings.EqualFold(r.author, b.me)
		last := r.spot == before.Last || before.Last.Place == inReview && r.review == before.Last.ID
		switch {
		case r.Place == onLine && r.Thread == k.o.Asked.Thread:
			return true
		case r.review != 0 && r.review == b.asked.review:
			return true
		}
		return !mine && !last && !r.at.Before(before.Until) // there may be others in the same second
	})
}

// everything returns all remarks.
func (k talk) everything(ctx context.Context) (batch, error) {
	return k.gather(ctx, time.Time{}, func(batch, remark) bool { return true })
}

// gather reads the wanted remarks. It leaves out remarks written or edited after the request, because the author of the
// request has not seen them. It also leaves out the request itself, which is known from the event.
func (k talk) gather(ctx context.Context, since time.Time, wanted func(batch, remark) bool) (batch, error) {
	b := batch{}
	var err error
	if b.me, err = k.forge.Login(ctx); err != nil {
		return b, k.sorted("read "+k.o.String(), err)
	}
	var all []remark
	for _, list := range []remarks{k.conversation(ctx, k.gh, k.o, since), k.lines(ctx, k.gh, k.o, time.Time{}), k.reviews(ctx, k.gh, k.o)} {
		for r, err := range list {
			if err != nil {
				return b, k.sorted("read remarks on "+k.o.String(), err)
			}
			if r.spot == k.o.Asked.spot {
				b.asked = r
			}
			all = append(all, r)
		}
	}
	until := k.o.Asked.At
	for _, r := range all {
		late := r.at.After(until) || r.edited.After(until)
		if late && r.review != 0 && r.review == b.asked.review && r.author == k.task.Actor {
			late = false // GitHub dates comments of a review to about the time it was submitted
		}
		if late || r.spot == k.o.Asked.spot || untrusted.Visible(r.body) == "" || !wanted(b, r) {
			continue
		}
		b.remarks = append(b.remarks, r)
	}
	slices.SortStableFunc(b.remarks, func(x, y remark) int { return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.ID, y.ID)) })
	return b, nil
}

// asksMore reports whether a review has text besides its requests: each comment with a request is a separate task.
func (b batch) asksMore() bool {
	return untrusted.Visible(b.asked.body) != "" || slices.ContainsFunc(b.remarks, func(r remark) bool {
		return r.review == b.asked.review && !r.speaksTo(b.me)
	})
}

// prompt returns the prompt of a request: its text, and the remarks it may refer to.
func (b batch) prompt(k talk) string {
	where := map[place]string{
		inConversation: "in the conversation of pull request " + k.o.String(),
		onLine:         "on a line of the diff of pull request " + k.o.String(),
		inReview:       "in a review of pull request " + k.o.String(),
	}[k.o.Asked.Place]
	return strings.TrimSpace(fmt.Sprintf("@%s asks you, %s:\n\n%s\n\n%s%s", k.task.Actor, where, k.task.Prompt, b.asked.shown(), b.said()))
}

// order returns the prompt of a command with the text below it.
func (b batch) order(k talk, what string) string {
	return strings.TrimSpace(what + k.o.added(k.task) + "\n\n" + b.said())
}

// said quotes the remarks, each in its own fence, or returns "". If there are too many, it drops the oldest.
func (b batch) said() string {
	var blocks []string
	left, shown := maxBatch, map[int64]bool{0: true, b.asked.Thread: true}
	for _, r := range slices.Backward(b.remarks[max(0, len(b.remarks)-maxRemarks):]) {
		block := ""
		if !shown[r.Thread] {
			block, shown[r.Thread] = r.shown(), true
		}
		block += untrusted.Quote("comment of "+r.speaker(b.me), untrusted.Cut(untrusted.Visible(r.body), maxRemark))
		if left -= utf8.RuneCountInString(block); left < 0 {
			break
		}
		blocks = append(blocks, block)
	}
	if len(blocks) == 0 {
		return ""
	}
	slices.Reverse(blocks)
	return "These earlier remarks on the pull request, oldest first, may be relevant:\n\n" + strings.Join(blocks, "\n")
}

// shown quotes the part of the diff above a remark on a line, or returns "".
func (r remark) shown() string {
	if r.hunk == "" {
		return ""
	}
	at := untrusted.Line(r.path, 300)
	if r.line > 0 {
		at += fmt.Sprintf(":%d", r.line)
	}
	hunk := []rune(r.hunk)
	return untrusted.Quote("the diff up to "+at, string(hunk[max(0, len(hunk)-maxHunk):]))
}
