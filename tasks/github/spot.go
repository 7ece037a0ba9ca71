package github

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/google/go-github/v60/github"
)

// place is where on a pull request people say something.
type place string

const (
	inConversation place = "conversation"
	onLine         place = "line"   // of the diff
	inReview       place = "review" // its body
)

// spot is one comment.
type spot struct {
	Place  place `json:"place"`
	ID     int64 `json:"id"`
	Thread int64 `json:"thread,omitempty"` // on a line: the comment that began the thread, to which alone GitHub takes replies
}

// identity is the spot as a part of a task's ID. A comment is the same task however often, and in how many forms, GitHub tells of it.
func (p spot) identity() string {
	switch p.Place {
	case onLine:
		return fmt.Sprintf("l%d.%d", p.Thread, p.ID)
	case inReview:
		return fmt.Sprintf("r%d", p.ID)
	}
	return fmt.Sprintf("c%d", p.ID)
}

var identityForm = regexp.MustCompile(`-github-(?:c([0-9]+)|l([0-9]+)\.([0-9]+)|r([0-9]+))$`)

// spotOf is the comment that asked for a task, by the task's ID; false where no comment did.
func spotOf(task string) (p spot, ok bool) {
	m := identityForm.FindStringSubmatch(task)
	if m == nil {
		return spot{}, false
	}
	number := func(s string) int64 {
		n, _ := strconv.ParseInt(s, 10, 64)
		return n
	}
	switch {
	case m[1] != "":
		return spot{Place: inConversation, ID: number(m[1])}, true
	case m[4] != "":
		return spot{Place: inReview, ID: number(m[4])}, true
	}
	return spot{Place: onLine, Thread: number(m[2]), ID: number(m[3])}, true
}

// beside reports whether what is said at one spot is read at the other.
func (p spot) beside(o spot) bool {
	return p.Place == onLine == (o.Place == onLine) && p.Thread == o.Thread
}

// The signs that a comment gets: when it is taken, and when what it asked for has been done, or has not.
const (
	eyes    = "eyes"
	done    = "hooray"
	notDone = "confused"
)

// react puts a sign on a comment. The same one again changes nothing. The body of a review takes none from a REST client.
func react(ctx context.Context, gh *github.Client, o origin, p spot, sign string) (err error) {
	owner, name := o.path()
	switch p.Place {
	case inConversation:
		_, _, err = gh.Reactions.CreateIssueCommentReaction(ctx, owner, name, p.ID, sign)
	case onLine:
		_, _, err = gh.Reactions.CreatePullRequestCommentReaction(ctx, owner, name, p.ID, sign)
	}
	if err != nil {
		return fmt.Errorf("react to comment %d of %s: %w", p.ID, o, err)
	}
	return nil
}
