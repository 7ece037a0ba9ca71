package github

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
)

// thread is the conversation of a pull request or an issue: what people said there, and what errand has posted. Every
// text that errand posts begins with a mark, which GitHub does not show, and is found again by it. Only errand's own
// remarks count, because others may copy the marks. It is safe for concurrent use.
type thread struct {
	api
	gh          *github.Client
	o           origin
	owner, name string // of the repository
}

// reach returns the conversation of a task. It reads nothing.
func (a api) reach(ctx context.Context, o origin) (thread, error) {
	gh, err := a.forge.Client(ctx, o.Repo, o.Installation)
	if err != nil {
		return thread{}, err
	}
	owner, name := o.path()
	return thread{api: a, gh: gh, o: o, owner: owner, name: name}, nil
}

// currentPull returns the conversation of a task's pull request, and the pull request as it is now.
func (a api) currentPull(ctx context.Context, o origin) (thread, *github.PullRequest, error) {
	t, err := a.reach(ctx, o)
	if err != nil {
		return thread{}, nil, a.briefError("reach "+o.String(), err)
	}
	pr, err := t.pull(ctx)
	if err != nil {
		return thread{}, nil, a.briefError("read "+o.String(), err)
	}
	return t, pr, nil
}

// pull reads the pull request.
func (t thread) pull(ctx context.Context) (*github.PullRequest, error) {
	pr, _, err := t.gh.PullRequests.Get(ctx, t.owner, t.name, t.o.Number)
	return pr, err
}

// currentIssue returns the conversation of a task's issue, and the issue as it is now. The address of a transferred
// issue leads to another one, whose readers may be others.
func (a api) currentIssue(ctx context.Context, o origin) (thread, *github.Issue, error) {
	t, err := a.reach(ctx, o)
	if err != nil {
		return thread{}, nil, a.briefError("reach "+o.String(), err)
	}
	issue, _, err := t.gh.Issues.Get(ctx, t.owner, t.name, o.Number)
	switch {
	case hub.StatusCode(err) == http.StatusGone:
		return thread{}, nil, refuse(issueEnds[actionDeleted])
	case err != nil:
		return thread{}, nil, a.briefError("read "+o.String(), err)
	case issue.GetNumber() != o.Number || o.Issue != 0 && issue.GetID() != o.Issue:
		return thread{}, nil, refuse(issueEnds["transferred"])
	}
	return t, issue, nil
}

// notLinked returns an *tasks.InputError if the description of someone's open pull request says that it closes an
// issue. It reads only the newest ones.
func (t thread) notLinked(ctx context.Context) error {
	what := "look for pull requests for " + t.o.String()
	me, err := t.forge.Login(ctx)
	if err != nil {
		return t.briefError(what, err)
	}
	list, _, err := t.gh.PullRequests.List(ctx, t.owner, t.name,
		&github.PullRequestListOptions{State: "open", ListOptions: github.ListOptions{PerPage: 100}})
	if err != nil {
		return t.briefError(what, err)
	}
	closes := regexp.MustCompile(fmt.Sprintf(`(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:(?:%[1]s)?#|https?://\S+/%[1]s/issues/)%[2]d\b`,
		regexp.QuoteMeta(t.o.Repo), t.o.Number))
	for _, pr := range list {
		if pr.GetUser().GetLogin() != me && closes.MatchString(untrusted.Visible(pr.GetBody())) {
			const why = "Pull request #%d says that it closes this issue. To have me work on it anyway, comment `%s`."
			return refuse(fmt.Sprintf(why, pr.GetNumber(), cmdFix))
		}
	}
	return nil
}

// changedSince reports whether a file may differ between an earlier commit and the head. If the earlier commit is
// unknown, it is "", and the file may differ.
func (t thread) changedSince(ctx context.Context, path, earlier string) (bool, error) {
	if earlier == "" || earlier == t.o.Head {
		return earlier == "", nil
	}
	var blobs [2]string
	for i, commit := range []string{earlier, t.o.Head} {
		file, _, _, err := t.gh.Repositories.GetContents(ctx, t.owner, t.name, path,
			&github.RepositoryContentGetOptions{Ref: commit})
		if hub.Permanent(err) { // such as a file that is not there
			return true, nil
		} else if err != nil {
			return true, fmt.Errorf("read %s of %s: %w", path, t.o.Repo, err)
		}
		blobs[i] = file.GetSHA()
	}
	return blobs[0] != blobs[1], nil
}

// conflicts returns the key for the conflicts of a head with its base: after one attempt, one of the two has to move
// before the next. The base SHA in a pull request itself is that of its last push, so the branch is read.
func (t thread) conflicts(ctx context.Context, pr *github.PullRequest) (key string, err error) {
	base, _, err := t.gh.Repositories.GetBranch(ctx, t.owner, t.name, pr.GetBase().GetRef(), 0)
	if err != nil {
		return "", fmt.Errorf("read branch %s: %w", pr.GetBase().GetRef(), err)
	}
	return "conflict " + pr.GetHead().GetSHA() + " " + base.GetCommit().GetSHA(), nil
}

// labelledBy returns who last added a label to a pull request, or ghost if unknown. Lists and pull requests do not
// contain this.
func (t thread) labelledBy(ctx context.Context, label string) (login string, err error) {
	last, err := t.lastEvent(ctx, func(e *github.IssueEvent) bool { return isLabelling(e, label) })
	return cmp.Or(last.GetActor().GetLogin(), ghost), err
}

func isLabelling(e *github.IssueEvent, label string) bool {
	return e.GetEvent() == actionLabeled && isLabel(e.GetLabel().GetName(), label)
}

// lastEvent returns the newest wanted event in the history of a pull request or an issue, or nil.
func (t thread) lastEvent(
	ctx context.Context, wanted func(*github.IssueEvent) bool,
) (last *github.IssueEvent, err error) {
	opt := &github.ListOptions{PerPage: 100}
	same := func(e *github.IssueEvent) *github.IssueEvent { return e }
	for e, err := range hub.Pages(opt, same, func() ([]*github.IssueEvent, *github.Response, error) {
		return t.gh.Issues.ListIssueEvents(ctx, t.owner, t.name, t.o.Number, opt)
	}) {
		if err != nil {
			return nil, t.briefError("read the events of "+t.o.String(), err)
		}
		if wanted(e) {
			last = e
		}
	}
	return last, nil
}

// changed lists the files of a pull request, including old names of moved files. Beyond a thousand files it returns
// nil, because no one lists that many in the settings.
func (t thread) changed(ctx context.Context) ([]string, error) {
	var all []string
	n := 0
	for f, err := range t.files(ctx) {
		if err != nil {
			return nil, t.briefError("read the files of "+t.o.String(), err)
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

// own iterates over those remarks that are errand's. Others may copy the marks by which errand finds its own.
func (t thread) own(ctx context.Context, list remarks) remarks {
	return func(yield func(remark, error) bool) {
		me, err := t.forge.Login(ctx)
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
func (t thread) comments(ctx context.Context, since time.Time) remarks {
	opt := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 100}}
	if !since.IsZero() {
		opt.Since = &since
	}
	return hub.Pages(&opt.ListOptions, fromIssueComment, func() ([]*github.IssueComment, *github.Response, error) {
		return t.gh.Issues.ListComments(ctx, t.owner, t.name, t.o.Number, opt)
	})
}

// lineComments iterates over the comments on lines written or edited since then.
func (t thread) lineComments(ctx context.Context, since time.Time) remarks {
	opt := &github.PullRequestListCommentsOptions{Since: since, ListOptions: github.ListOptions{PerPage: 100}}
	return hub.Pages(&opt.ListOptions, fromLine, func() ([]*github.PullRequestComment, *github.Response, error) {
		return t.gh.PullRequests.ListComments(ctx, t.owner, t.name, t.o.Number, opt)
	})
}

// reviews iterates over the bodies of all reviews.
func (t thread) reviews(ctx context.Context) remarks {
	opt := &github.ListOptions{PerPage: 100}
	return hub.Pages(opt, fromReview, func() ([]*github.PullRequestReview, *github.Response, error) {
		return t.gh.PullRequests.ListReviews(ctx, t.owner, t.name, t.o.Number, opt)
	})
}

// files iterates over the changed files of a pull request in GitHub's order, at most 3,000.
func (t thread) files(ctx context.Context) iter.Seq2[*github.CommitFile, error] {
	opt := &github.ListOptions{PerPage: 100}
	same := func(f *github.CommitFile) *github.CommitFile { return f }
	return hub.Pages(opt, same, func() ([]*github.CommitFile, *github.Response, error) {
		return t.gh.PullRequests.ListFiles(ctx, t.owner, t.name, t.o.Number, opt)
	})
}

// find returns the first remark of errand that begins with a mark; ok is false if there is none.
func (t thread) find(ctx context.Context, list remarks, mark string) (r remark, ok bool, err error) {
	for r, err := range t.own(ctx, list) {
		if err != nil {
			return remark{}, false, err
		}
		r.body = strings.ReplaceAll(r.body, "\r\n", "\n") // as GitHub's page writes what people edit there
		if strings.HasPrefix(r.body, mark) {
			return r, true, nil
		}
	}
	return remark{}, false, nil
}

// post posts a comment: below the one on a line that it answers, or in the conversation. It returns the ID of the
// latter.
func (t thread) post(ctx context.Context, to spot, body string) (id int64, err error) {
	if to.Place == onLine {
		return 0, t.replyOnLine(ctx, to.Thread, body)
	}
	c, _, err := t.gh.Issues.CreateComment(ctx, t.owner, t.name, t.o.Number, &github.IssueComment{Body: &body})
	return c.GetID(), err
}

// replyOnLine answers the first comment of a thread on a line. go-github's own call sends the answer to where new
// comments are made, which GitHub's description allows only with a commit and a path.
func (t thread) replyOnLine(ctx context.Context, comment int64, body string) error {
	path := fmt.Sprintf("repos/%s/%s/pulls/%d/comments/%d/replies", t.owner, t.name, t.o.Number, comment)
	req, err := t.gh.NewRequest(http.MethodPost, path, map[string]string{"body": body})
	if err != nil {
		return fmt.Errorf("reply to comment %d: %w", comment, err)
	}
	_, err = t.gh.Do(ctx, req, nil)
	return err
}

// edit replaces the text of one of errand's comments.
func (t thread) edit(ctx context.Context, at spot, body string) (err error) {
	if at.Place == onLine {
		_, _, err = t.gh.PullRequests.EditComment(ctx, t.owner, t.name, at.ID, &github.PullRequestComment{Body: &body})
	} else {
		_, _, err = t.gh.Issues.EditComment(ctx, t.owner, t.name, at.ID, &github.IssueComment{Body: &body})
	}
	return err
}

// react adds a reaction to a comment. Adding the same one again changes nothing. REST cannot add one to the body of a
// review.
func (t thread) react(ctx context.Context, p spot, reaction string) (err error) {
	switch p.Place {
	case inConversation:
		_, _, err = t.gh.Reactions.CreateIssueCommentReaction(ctx, t.owner, t.name, p.ID, reaction)
	case onLine:
		_, _, err = t.gh.Reactions.CreatePullRequestCommentReaction(ctx, t.owner, t.name, p.ID, reaction)
	case inIssue:
		_, _, err = t.gh.Reactions.CreateIssueReaction(ctx, t.owner, t.name, t.o.Number, reaction)
	}
	if err != nil {
		return fmt.Errorf("react to comment %d of %s: %w", p.ID, t.o, err)
	}
	return nil
}

const removeReaction = `mutation($target: ID!, $sign: ReactionContent!) {
  removeReaction(input: {subjectId: $target, content: $sign}) { reaction { id } }
}`

// removeReaction removes errand's reaction from an issue or from a comment on one, if there is one.
func (t thread) removeReaction(ctx context.Context, r remark, reaction string) error {
	vars := map[string]any{"target": r.node, "sign": strings.ToUpper(reaction)}
	var answer struct{}
	err := hub.GraphQL(ctx, t.gh, removeReaction, vars, &answer)
	if hub.Permanent(err) {
		return nil // there is none
	}
	return err
}

// message is a text that is posted once, even if send is called several times: each part is found again by its mark.
type message struct {
	task   string
	ending tasks.EndingKind
	at     int64 // time of the ending in Unix microseconds; each ending of a retried task has its own
	to     spot  // the comment to answer
	since  time.Time
	after  time.Time // a final message of an ending after this time prevents posting
	parts  []string  // Markdown
}

// mark returns the first line of a part, which GitHub does not show.
func (m message) mark(part int) string {
	return fmt.Sprintf("<!-- errand:reply task=%s part=%d ending=%s at=%d -->", m.task, part, m.ending, m.at)
}

var (
	replyMark = regexp.MustCompile(`^<!-- errand:reply task=(\S+) part=[0-9]+ ending=(\S+) at=([0-9]{1,18}) -->`)
	oursForm  = regexp.MustCompile(`^\s*<!-- errand:`)
)

// ours reports whether a comment begins with one of errand's marks.
func ours(body string) bool { return oursForm.MatchString(body) }

// noteEnding replaces the name of an ending in the mark of a message outside of tasks.
const noteEnding tasks.EndingKind = "note"

// send posts the parts that are not there yet, in order. If its thread on a line is gone, it posts to the conversation.
func (t thread) send(ctx context.Context, m message) error {
	err := t.sendTo(ctx, m)
	code := hub.StatusCode(err)
	gone := code == http.StatusNotFound || code == http.StatusUnprocessableEntity
	if m.to.Place == onLine && gone && hub.Permanent(err) {
		m.to = spot{Place: inConversation}
		err = t.sendTo(ctx, m)
	}
	return err
}

func (t thread) sendTo(ctx context.Context, m message) error {
	sent, err := t.sent(ctx, m)
	if err != nil {
		return fmt.Errorf("find an earlier reply on %s: %w", t.o, err)
	}
	isFinal := m.at != 0 && m.ending != noteEnding
	if e := m.final(sent, m.after); isFinal && e != nil && e.At.UnixMicro() != m.at {
		t.log.Warn("final message skipped: one is posted for an ending that is missing in Redis", "run",
			m.task, "ended", e.At)
		return nil
	}
	for i, text := range m.parts {
		mark := m.mark(i + 1)
		if sent[mark] {
			continue
		}
		if _, err := t.post(ctx, m.to, mark+"\n"+text); err != nil {
			return fmt.Errorf("reply on %s, part %d: %w", t.o, i+1, err)
		}
	}
	return nil
}

// sent finds the posted parts by their marks.
func (t thread) sent(ctx context.Context, m message) (map[string]bool, error) {
	found := map[string]bool{}
	for r, err := range t.own(ctx, t.near(ctx, m)) {
		if err != nil {
			return nil, err
		}
		found[replyMark.FindString(r.body)] = true
	}
	return found, nil
}

// near lists the remarks at the place where a message is posted.
func (t thread) near(ctx context.Context, m message) remarks {
	if m.to.Place == onLine {
		return t.lineComments(ctx, m.since)
	}
	return t.comments(ctx, m.since)
}

// final returns the latest ending after that time among the marks, or nil. Marks of questions, updates and notes do not
// count: they have no time, or the name of a note.
func (m message) final(sent map[string]bool, after time.Time) *tasks.Ending {
	var last *tasks.Ending
	for mark := range sent {
		f := replyMark.FindStringSubmatch(mark)
		if f == nil || f[1] != m.task || tasks.EndingKind(f[2]) == noteEnding {
			continue
		}
		micros, err := strconv.ParseInt(f[3], 10, 64)
		if at := time.UnixMicro(micros).UTC(); err == nil && micros > 0 && at.After(after) &&
			(last == nil || at.After(last.At)) {
			last = &tasks.Ending{Kind: tasks.EndingKind(f[2]), At: at}
		}
	}
	return last
}

// findFinal finds a task's final message that answers a request or, of automatic work, is in the conversation.
func (t thread) findFinal(ctx context.Context, task string, after time.Time) (*tasks.Ending, error) {
	m := message{task: task, to: spot{Place: inConversation}}
	places := []spot{m.to}
	if asked := t.o.Asked; asked != nil {
		m.since = asked.At
		if asked.Place == onLine {
			places = append(places, asked.spot)
		}
	}
	for _, m.to = range places {
		sent, err := t.sent(ctx, m)
		if err != nil {
			return nil, err
		}
		if e := m.final(sent, after); e != nil {
			return e, nil
		}
	}
	return nil, nil
}

// unposted says what an error of GitHub means for a final message. Only a conversation that does not exist any more is
// final: a right may be granted, and an installation resumed. What GitHub hides from errand looks the same as what is
// gone, so the repository must be visible now.
func (t thread) unposted(ctx context.Context, what string, err error) error {
	failed := &tasks.UnpostedError{Why: hub.Complaint(err), Err: t.reportError(what, err)}
	code := hub.StatusCode(err)
	gone := code == http.StatusGone
	if code == http.StatusNotFound {
		_, _, err := t.gh.Repositories.Get(ctx, t.owner, t.name)
		gone = err == nil
	}
	if gone {
		failed.Why, failed.Final = "its conversation does not exist any more", true
	}
	return failed
}
