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

// What the agent is told of what was said: the newest remarks.
const (
	maxRemarks = 50
	maxBatch   = 20_000 // characters in all
	maxRemark  = 10_000 // characters of one
	maxHunk    = 3_000  // characters of the diff above a line, its end
)

// batch is what was said on a pull request up to the comment that asks, oldest first.
type batch struct {
	me      string
	remarks []remark
	asked   remark // that comment; of it only what the event cannot have told is new
}

// unanswered are the remarks since the last one that was answered, and whatever the comment that asks belongs to: its thread on a line, or
// the review it came with.
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
		return !mine && !last && !r.at.Before(before.Until) // there may be others of the same second
	})
}

// everything is all that was said.
func (k talk) everything(ctx context.Context) (batch, error) {
	return k.gather(ctx, time.Time{}, func(batch, remark) bool { return true })
}

// gather reads what was said and is wanted. What was written or edited after the comment that asks is left out: nobody who agreed to it has
// seen it. So is that comment, which is known by the event.
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
				return b, k.sorted("read what was said on "+k.o.String(), err)
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
			late = false // GitHub dates what was written before a review to when that was sent, or so
		}
		if late || r.spot == k.o.Asked.spot || untrusted.Visible(r.body) == "" || !wanted(b, r) {
			continue
		}
		b.remarks = append(b.remarks, r)
	}
	slices.SortStableFunc(b.remarks, func(x, y remark) int { return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.ID, y.ID)) })
	return b, nil
}

// asksMore reports whether a review says anything but what speaks to us: each comment of it that does is a task of its own.
func (b batch) asksMore() bool {
	return untrusted.Visible(b.asked.body) != "" || slices.ContainsFunc(b.remarks, func(r remark) bool {
		return r.review == b.asked.review && !r.speaksTo(b.me)
	})
}

// prompt is what somebody said to us, in his own words, and what he may refer to.
func (b batch) prompt(k talk) string {
	where := map[place]string{
		inConversation: "in the conversation of pull request " + k.o.String(),
		onLine:         "on a line of the diff of pull request " + k.o.String(),
		inReview:       "in a review of pull request " + k.o.String(),
	}[k.o.Asked.Place]
	return strings.TrimSpace(fmt.Sprintf("@%s asks you, %s:\n\n%s\n\n%s%s", k.task.Actor, where, k.task.Prompt, b.asked.shown(), b.said()))
}

// order is a command, with what was written below it.
func (b batch) order(k talk, what string) string {
	return strings.TrimSpace(what + k.o.added(k.task) + "\n\n" + b.said())
}

// said shows the remarks, each in a fence of its own; empty when there are none. Where there are too many the oldest are left out.
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
	return "This was said on the pull request before, oldest first, and may be what is meant:\n\n" + strings.Join(blocks, "\n")
}

// shown is the part of the diff that a remark on a line stands below; empty for any other.
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
