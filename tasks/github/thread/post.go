package thread

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
)

// Post posts a comment: below the one on a line that it answers, or in the conversation. It returns the ID of the
// latter.
func (t Thread) Post(ctx context.Context, to Spot, body string) (id int64, err error) {
	if to.Place == OnLine {
		return 0, t.replyOnLine(ctx, to.Thread, body)
	}
	c, _, err := t.GH.Issues.CreateComment(ctx, t.Owner, t.Name, t.Number, &github.IssueComment{Body: &body})
	return c.GetID(), err
}

// replyOnLine answers the first comment of a thread on a line. go-github's own call sends the answer to where new
// comments are made, which GitHub's description allows only with a commit and a path.
func (t Thread) replyOnLine(ctx context.Context, comment int64, body string) error {
	path := fmt.Sprintf("repos/%s/%s/pulls/%d/comments/%d/replies", t.Owner, t.Name, t.Number, comment)
	req, err := t.GH.NewRequest(http.MethodPost, path, map[string]string{"body": body})
	if err != nil {
		return fmt.Errorf("reply to comment %d: %w", comment, err)
	}
	_, err = t.GH.Do(ctx, req, nil)
	return err
}

// Edit replaces the text of one of errand's comments.
func (t Thread) Edit(ctx context.Context, at Spot, body string) (err error) {
	if at.Place == OnLine {
		_, _, err = t.GH.PullRequests.EditComment(ctx, t.Owner, t.Name, at.ID, &github.PullRequestComment{Body: &body})
	} else {
		_, _, err = t.GH.Issues.EditComment(ctx, t.Owner, t.Name, at.ID, &github.IssueComment{Body: &body})
	}
	return err
}

// React adds a reaction to a remark. Adding the same one again changes nothing. REST cannot add one to the body of a
// review.
func (t Thread) React(ctx context.Context, p Spot, reaction string) (err error) {
	switch p.Place {
	case InConversation:
		_, _, err = t.GH.Reactions.CreateIssueCommentReaction(ctx, t.Owner, t.Name, p.ID, reaction)
	case OnLine:
		_, _, err = t.GH.Reactions.CreatePullRequestCommentReaction(ctx, t.Owner, t.Name, p.ID, reaction)
	case InIssue:
		_, _, err = t.GH.Reactions.CreateIssueReaction(ctx, t.Owner, t.Name, t.Number, reaction)
	}
	if err != nil {
		return fmt.Errorf("react to comment %d of %s: %w", p.ID, t.Ref, err)
	}
	return nil
}

const removeReaction = `mutation($target: ID!, $sign: ReactionContent!) {
  removeReaction(input: {subjectId: $target, content: $sign}) { reaction { id } }
}`

// RemoveReaction removes errand's reaction from an issue or from a comment on one, if there is one.
func (t Thread) RemoveReaction(ctx context.Context, r Remark, reaction string) error {
	vars := map[string]any{"target": r.Node, "sign": strings.ToUpper(reaction)}
	var answer struct{}
	err := hub.GraphQL(ctx, t.GH, removeReaction, vars, &answer)
	if hub.Permanent(err) {
		return nil // there is none
	}
	return err
}

// Message is a text that is posted once, even if Send is called several times: each part is found again by its mark.
type Message struct {
	Task  string    // ID of the task, or that the comment would have had if it became none
	What  string    // the kind of the ending, or what else is said, such as Note
	At    int64     // time of the ending in Unix microseconds: each ending of a retried task has its own; or 0
	To    Spot      // the comment to answer
	Since time.Time // the earliest time at which it can have been posted
	After time.Time // a final message of an ending after this time prevents posting
	Parts []string  // Markdown
}

// Note is what a message outside of tasks is.
const Note = "note"

// Mark returns the first line of a part, which GitHub does not show.
func (m Message) Mark(part int) string {
	return fmt.Sprintf("<!-- errand:reply task=%s part=%d ending=%s at=%d -->", m.Task, part, m.What, m.At)
}

var (
	messageMark = regexp.MustCompile(`^<!-- errand:reply task=(\S+) part=[0-9]+ ending=(\S+) at=([0-9]{1,18}) -->`)
	anyMark     = regexp.MustCompile(`^\s*<!-- errand:`)
)

// IsMarked reports whether a text begins with one of errand's marks.
func IsMarked(body string) bool { return anyMark.MatchString(body) }

// WhatOf returns what a message of errand is, from its text, or "" if the text is none.
func WhatOf(body string) string {
	if m := messageMark.FindStringSubmatch(body); m != nil {
		return m[2]
	}
	return ""
}

// Send posts the parts that are not there yet, in order. If its thread on a line is gone, it posts to the conversation.
func (t Thread) Send(ctx context.Context, m Message) error {
	err := t.sendTo(ctx, m)
	code := hub.StatusCode(err)
	gone := code == http.StatusNotFound || code == http.StatusUnprocessableEntity
	if m.To.Place == OnLine && gone && hub.Permanent(err) {
		m.To = Spot{}
		err = t.sendTo(ctx, m)
	}
	return err
}

func (t Thread) sendTo(ctx context.Context, m Message) error {
	sent, err := t.sent(ctx, m)
	if err != nil {
		return fmt.Errorf("find an earlier reply on %s: %w", t.Ref, err)
	}
	if e := m.final(sent); m.At != 0 && e != nil && e.At.UnixMicro() != m.At {
		t.Log.Warn("final message skipped: one is posted for an ending that is missing in Redis", "run",
			m.Task, "ended", e.At)
		return nil
	}
	for i, text := range m.Parts {
		mark := m.Mark(i + 1)
		if sent[mark] {
			continue
		}
		if _, err := t.Post(ctx, m.To, mark+"\n"+text); err != nil {
			return fmt.Errorf("reply on %s, part %d: %w", t.Ref, i+1, err)
		}
	}
	return nil
}

// Replace replaces the text of a message with one part, if it is there.
func (t Thread) Replace(ctx context.Context, m Message) error {
	r, found, err := t.Find(ctx, t.near(ctx, m), m.Mark(1))
	if err != nil || !found {
		return err
	}
	return t.Edit(ctx, r.Spot, m.Mark(1)+"\n"+m.Parts[0])
}

// sent finds the posted parts by their marks.
func (t Thread) sent(ctx context.Context, m Message) (map[string]bool, error) {
	found := map[string]bool{}
	for r, err := range t.Own(ctx, t.near(ctx, m)) {
		if err != nil {
			return nil, err
		}
		found[messageMark.FindString(r.Body)] = true
	}
	return found, nil
}

// near lists the remarks at the place where a message is posted.
func (t Thread) near(ctx context.Context, m Message) Remarks {
	if m.To.Place == OnLine {
		return t.LineComments(ctx, m.Since)
	}
	return t.Comments(ctx, m.Since)
}

// final returns the latest ending of the task after m.After among the marks, or nil. Marks of questions, updates and
// notes do not count: they have no time.
func (m Message) final(sent map[string]bool) *tasks.Ending {
	var last *tasks.Ending
	for mark := range sent {
		f := messageMark.FindStringSubmatch(mark)
		if f == nil || f[1] != m.Task {
			continue
		}
		micros, err := strconv.ParseInt(f[3], 10, 64)
		if at := time.UnixMicro(micros).UTC(); err == nil && micros > 0 && at.After(m.After) &&
			(last == nil || at.After(last.At)) {
			last = &tasks.Ending{Kind: tasks.EndingKind(f[2]), At: at}
		}
	}
	return last
}

// FindFinal finds the final message of m's task, where m goes and in the conversation.
func (t Thread) FindFinal(ctx context.Context, m Message) (*tasks.Ending, error) {
	places := []Spot{{}}
	if m.To.Place == OnLine {
		places = append(places, m.To)
	}
	for _, m.To = range places {
		sent, err := t.sent(ctx, m)
		if err != nil {
			return nil, err
		}
		if e := m.final(sent); e != nil {
			return e, nil
		}
	}
	return nil, nil
}

// Unposted says what an error of GitHub means for a final message. Only a conversation that does not exist any more is
// final: a right may be granted, and an installation resumed. What GitHub hides from errand looks the same as what is
// gone, so the repository must be visible now.
func (t Thread) Unposted(ctx context.Context, what string, err error) error {
	failed := &tasks.UnpostedError{Why: hub.Complaint(err), Err: t.ReportError(what, err)}
	code := hub.StatusCode(err)
	gone := code == http.StatusGone
	if code == http.StatusNotFound {
		_, _, err := t.GH.Repositories.Get(ctx, t.Owner, t.Name)
		gone = err == nil
	}
	if gone {
		failed.Why, failed.Final = "its conversation does not exist any more", true
	}
	return failed
}
