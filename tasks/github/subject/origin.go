// Package subject has what every part of the source knows about the pull request or issue of a task: the origin of the
// task, the state that outlives it, who may have something done there, and the kinds of tasks. Events, comments,
// reviews and fixes build on it; it knows none of them.
package subject

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/internal/words"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// Source is the name of the source, which its threads begin with.
const Source = "github"

// Origin is where a task came from and where its report goes. It keeps more than is used today, because the state at
// the time of the event cannot be read later.
type Origin struct {
	thread.Ref
	Issue   int64  `json:"issue,omitempty"` // ID of the issue; 0 for a pull request
	Head    string `json:"head"`            // commit; "" for an issue
	Base    string `json:"base"`            // branch; "" for the default branch, for an issue
	BaseSHA string `json:"base_sha"`
	Title   string `json:"title"`          // on one line, without hidden text
	Body    string `json:"body,omitempty"` // the description, without hidden text
	URL     string `json:"html_url"`
	Action  string `json:"action"`
	// who approved this head of a fork; their permission is checked later
	ApprovedBy string        `json:"approved_by,omitempty"`
	Full       bool          `json:"full,omitempty"`  // also what the last review has covered
	Asked      *Request      `json:"asked,omitempty"` // nil if no one requested the task
	Also       []thread.Spot `json:"also,omitempty"`  // more comments that requested the same, for an earlier head
}

// Request is the comment that requested a task.
type Request struct {
	thread.Spot
	At      time.Time `json:"at"`
	URL     string    `json:"html_url"`
	Command string    `json:"command,omitempty"` // "" for a mention
	Words   string    `json:"words,omitempty"`   // text that came with a command
	Bot     bool      `json:"bot,omitempty"`     // the author is a listed bot
}

// Of decodes the origin of a task.
func Of(t tasks.Task) (Origin, error) {
	var o Origin
	if err := json.Unmarshal(t.Origin, &o); err != nil {
		return o, fmt.Errorf("read origin of task %s: %w", t.ID, err)
	}
	return o, nil
}

// OfPull returns the origin of a task for a pull request in its present state. Later edits are not part of the
// request.
func OfPull(repo string, pr *github.PullRequest) Origin {
	head, base := pr.GetHead(), pr.GetBase()
	o := Origin{
		Ref:  thread.Ref{Repo: repo, Number: pr.GetNumber()},
		Head: head.GetSHA(), Base: base.GetRef(), BaseSHA: base.GetSHA(), URL: pr.GetHTMLURL(),
	}
	o.Title, o.Body = ClipTexts(pr.GetTitle(), pr.GetBody())
	return o
}

// ClipTexts returns a title and a description without hidden text and shortened to their limits.
func ClipTexts(title, body string) (string, string) {
	return untrusted.Line(title, 200), untrusted.Cut(words.Markdown(body, "").All, MaxDescription)
}

// Kind returns "issue" or "pull request".
func (o Origin) Kind() string {
	if o.Issue != 0 {
		return "issue"
	}
	return "pull request"
}

// What returns the name of the issue or pull request for people and agents.
func (o Origin) What() string { return o.Kind() + " " + o.String() }

// ByPerson reports whether a person requested the task: by a comment, the label, or a review request.
func (o Origin) ByPerson() bool {
	return o.Asked != nil || o.ApprovedBy != "" || o.Action == ActionReviewRequested
}

// ByBot reports whether a bot requested the task.
func (o Origin) ByBot() bool { return o.Asked != nil && o.Asked.Bot }

// Spots returns the comments that requested a task.
func (o Origin) Spots() []thread.Spot {
	if o.Asked == nil {
		return slices.Clone(o.Also)
	}
	return append(slices.Clone(o.Also), o.Asked.Spot)
}

// Added returns the text below a command for the prompt, or "" if there is none.
func (o Origin) Added(t tasks.Task) string {
	if o.Asked == nil || o.Asked.Command == "" || o.Asked.Words == "" {
		return ""
	}
	return fmt.Sprintf("\n\n@%s adds this, which has priority:\n\n%s", t.Actor, o.Asked.Words)
}

// ClosedSince reports whether an issue is closed and was closed after the request.
func (o Origin) ClosedSince(issue *github.Issue) bool {
	at := issue.GetClosedAt().Time
	return issue.GetState() == "closed" && o.Asked.At.Before(at.Truncate(time.Second))
}

// MaxDescription is the most characters of a pull request's description that the agent gets.
const MaxDescription = 10_000

// IsAutomatic reports whether a task is automatic.
func IsAutomatic(t tasks.Task, o Origin) bool { return o.Asked == nil || t.Kind == KindReviewResponse }

// QuotePull quotes the pull request as it was when the task was requested; later edits by its author have not been seen
// by the person who requested it. The lines before the description are kept to one line each, so that only the
// description can contain several lines.
func (o Origin) QuotePull(pr *github.PullRequest) string {
	return untrusted.Quote("pull request "+o.String(),
		fmt.Sprintf("Title: %s\nAuthor: %s\nBase: %s at %s\nHead: %s at %s\nDescription:\n%s",
			o.Title, untrusted.Line(pr.GetUser().GetLogin(), 100),
			untrusted.Line(o.Base, 200), hub.ShortSHA(o.BaseSHA), untrusted.Line(pr.GetHead().GetRef(), 200),
			hub.ShortSHA(o.Head), o.Body))
}
