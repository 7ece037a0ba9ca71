package github

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
)

// Limits of automatic reviews and automatic work on a pull request until a person writes.
const (
	maxReviews = 5
	maxRounds  = 5
)

// limitReached is posted when a limit is reached.
const limitReached = "I have reached the limit of automatic work on this pull request. To continue, mention me with " +
	"a request, or comment `/resume`."

// maxBegun bounds the recorded automatic work on one pull request. It is far more than maxRounds allows, unless people
// resume the work for months; by then the oldest keys are of heads long gone.
const maxBegun = 500

// prState is the state of a pull request or an issue that all processes share between its tasks. Only
// changeState changes it.
type prState struct {
	Paused    bool      `json:"paused,omitempty"` // a person has stopped automatic work
	PausedBy  string    `json:"paused_by,omitempty"`
	CommandAt time.Time `json:"said,omitzero"` // time of the last pause or resume command

	Commands []string `json:"obeyed,omitempty"` // task IDs of the newest comments whose commands ran

	// Settled has the task IDs of the newest comments that become no task any more: their deletion may be interpreted
	// before them, and an edit after them.
	Settled []string `json:"deleted,omitempty"`
	Stopped string   `json:"stopped,omitempty"` // what the last comment that stops everything would be as a task

	Head   string    `json:"head,omitempty"`   // the newest known one
	Base   string    `json:"base,omitempty"`   // the branch that Head is compared with
	At     time.Time `json:"at,omitzero"`      // when GitHub last changed it; older events are ignored
	Review string    `json:"review,omitempty"` // the task that reviews Head with Base, or ""
	// Briefed is the base that a review was briefed with.
	Briefed briefedBase `json:"briefed,omitzero"`

	Reviews      int          `json:"reviews,omitempty"`       // automatic reviews so far
	LastReviewed string       `json:"last_reviewed,omitempty"` // last reviewed head, or a later one with its changes
	LastBase     string       `json:"last_base,omitempty"`     // the base of LastReviewed
	ReviewedBy   string       `json:"reviewed_by,omitempty"`   // the task of that review
	Verdict      savedVerdict `json:"verdict,omitzero"`        // what that review's indicator shows

	// Patches has the changes of LastReviewed and Head as patchID gives them, by version.
	Patches map[string]string `json:"patches,omitempty"`

	Rounds int               `json:"rounds,omitempty"` // automatic tasks since a person wrote
	Begun  map[string]string `json:"begun,omitempty"`  // the tasks of automatic work, by key

	// Started is when work on a whole issue, or by label the review of a fork, was requested last.
	Started time.Time `json:"started,omitzero"`
	Label   string    `json:"label,omitempty"` // the head of a fork that the label was for, and who gave it
	Plans   plans     `json:"plans,omitempty"` // of an issue

	Status issueStatus `json:"status,omitzero"` // of an issue

	Approved   string `json:"approved,omitempty"` // head of a fork that a maintainer has approved
	ApprovedBy string `json:"approved_by,omitempty"`
}

// briefedBase is the base that a task was briefed with.
type briefedBase struct {
	Task string `json:"task"`
	Base string `json:"base"`
}

// isAt reports whether the newest known state of a pull request is that of o.
func (p *prState) isAt(o origin) bool { return p.Head == o.Head && p.Base == o.Base }

// moveTo records the state of o. If it is another one, no task reviews it.
func (p *prState) moveTo(o origin) {
	if !p.isAt(o) {
		p.Review = ""
	}
	p.Head, p.Base = o.Head, o.Base
}

// hasReviewed reports whether the state of o was the last to be reviewed.
func (p *prState) hasReviewed(o origin) bool {
	return p.LastReviewed == o.Head && p.LastBase == o.Base
}

// version is the key of what a review depends on: a head and the branch that it is compared with. A push to that branch
// gives no other version, because it starts no review.
func version(head, base string) string { return strings.TrimSpace(head + " " + base) }

// begin assigns the work with this key to a task, unless another task has it, and reports whether the task has it now.
// A second call changes nothing.
func (p *prState) begin(key, task string) bool {
	if p.Begun[key] == "" {
		p.takeOver(key, task)
	}
	return p.Begun[key] == task
}

// takeOver assigns the work with this key to a task, even if another task has it.
func (p *prState) takeOver(key, task string) {
	if p.Begun == nil || len(p.Begun) >= maxBegun {
		p.Begun = map[string]string{}
	}
	p.Begun[key] = task
}

// automationBlocked returns the reason why no more automatic work is done, or "".
func (p *prState) automationBlocked() string {
	switch {
	case p.Paused:
		return "The pull request was paused by " + p.PausedBy + "."
	case p.Rounds >= maxRounds:
		return limitReached
	}
	return ""
}

// memory stores the data of each pull request that outlives its tasks: its state, the findings of its reviews, and the
// position in its conversation.
type memory struct {
	store intake.Memory
	log   *slog.Logger
}

func (m memory) stateMemo(r thread.Ref) intake.Memo[prState] {
	return intake.Memo[prState]{Memory: m.store, Name: "github/" + r.String() + "/state", Log: m.log}
}

// state reads the state of a pull request; the zero value if it is new.
func (m memory) state(ctx context.Context, r thread.Ref) (prState, error) {
	return m.stateMemo(r).Load(ctx)
}

// changeState changes the state of a pull request. change may be called several times if there are concurrent changes.
// If it returns an error, nothing is changed and the error is returned.
func (m memory) changeState(ctx context.Context, r thread.Ref, change func(*prState) error) error {
	return m.stateMemo(r).Change(ctx, change)
}

// cursor is the position in a pull request's conversation.
type cursor struct {
	// time of the newest answered comment; all before it were read with it
	Until    time.Time   `json:"until,omitzero"`
	Last     thread.Spot `json:"last,omitzero"`      // the newest answered comment
	Stranger bool        `json:"stranger,omitempty"` // a person without access was informed
}

func (m memory) cursor(r thread.Ref) intake.Memo[cursor] {
	return intake.Memo[cursor]{Memory: m.store, Name: "github/" + r.String() + "/seen", Log: m.log}
}

// answered records that a comment was answered.
func (m memory) answered(ctx context.Context, r thread.Ref, p thread.Spot, at time.Time) error {
	return m.cursor(r).Change(ctx, func(v *cursor) error {
		if at.After(v.Until) {
			v.Until, v.Last = at, p
		}
		return nil
	})
}

// firstStranger reports whether this is the first person without access on a pull request, and records it.
func (m memory) firstStranger(ctx context.Context, r thread.Ref) (first bool, err error) {
	err = m.cursor(r).Change(ctx, func(v *cursor) error {
		first, v.Stranger = !v.Stranger, true
		return nil
	})
	return first, err
}

// byPerson reports whether a person requested the task: by a comment, the label, or a review request.
func (o origin) byPerson() bool {
	return o.Asked != nil || o.ApprovedBy != "" || o.Action == requestedReview
}

// requestedReview is the action of requesting errand's review. GitHub lets triagers do so as well.
const requestedReview = "review_requested"

// pausing returns the note at the end of the summary after the last automatic review.
func (p *prState) pausing() string {
	if p.Reviews < maxReviews {
		return ""
	}
	return fmt.Sprintf("\n\nAfter %d reviews, pushes are no longer reviewed. Comment `/review` for another review, "+
		"or `/resume` to review every push again.", p.Reviews)
}

// unchanged refuses a review without anything new to report: of a head that was reviewed while this task waited, and of
// a push that does not alter the pull request's changes, such as a rebase or a merge of the base. The last review still
// holds.
func (k conversation) unchanged(ctx context.Context) error {
	o := k.o
	if o.byPerson() {
		return nil
	}
	switch p, err := k.b.memory.state(ctx, o.Ref); {
	case err != nil:
		return err
	case p.hasReviewed(o) && p.ReviewedBy != k.task.ID: // its own review was retried
		return thread.Refuse("The head was reviewed before.")
	case o.Action != "synchronize" && o.Action != actionPolled:
		return nil
	}
	diff, _, err := k.GH.PullRequests.GetRaw(ctx, k.Owner, k.Name, o.Number, github.RawOptions{Type: github.Diff})
	if hub.StatusCode(err) == http.StatusNotAcceptable {
		return nil // the diff is too large for GitHub
	}
	if err != nil {
		return k.BriefError("read the diff of "+o.String(), err)
	}
	var reviewed string
	err = k.b.memory.changeState(ctx, o.Ref, func(p *prState) error {
		reviewed = p.sameAs(o, patchID(diff))
		return nil
	})
	if err == nil && reviewed != "" {
		err = thread.Refuse("Nothing has changed since the review of " + hub.ShortSHA(reviewed) + ".")
	}
	return err
}

// sameAs records a head's changes and returns the reviewed head with the same changes to the same base, or "".
func (p *prState) sameAs(o origin, patch string) (reviewed string) {
	last := version(p.LastReviewed, p.LastBase)
	changes := map[string]string{last: p.Patches[last]}
	if last != "" && p.LastReviewed != o.Head && p.LastBase == o.Base && p.Patches[last] == patch {
		reviewed, p.LastReviewed, p.LastBase = p.LastReviewed, o.Head, o.Base
		changes = map[string]string{}
	}
	changes[version(o.Head, o.Base)] = patch
	delete(changes, "")
	p.Patches = changes
	return reviewed
}

// briefReview returns the origin of a review with the base that its pull request has now, and records that the task is
// briefed with it: the event may be older, and its base gone.
func (m memory) briefReview(ctx context.Context, t tasks.Task, o origin, pr *github.PullRequest) (origin, error) {
	o.Base, o.BaseSHA = pr.GetBase().GetRef(), pr.GetBase().GetSHA()
	err := m.changeState(ctx, o.Ref, func(p *prState) error {
		p.Briefed = briefedBase{Task: t.ID, Base: o.Base}
		if p.Review == t.ID {
			p.moveTo(o)
			p.Review = t.ID
		}
		return nil
	})
	return o, err
}

// asBriefed returns the origin of a review with the base that it was briefed with.
func (m memory) asBriefed(ctx context.Context, t tasks.Task, o origin) (origin, error) {
	p, err := m.state(ctx, o.Ref)
	if p.Briefed.Task == t.ID {
		o.Base = p.Briefed.Base
	}
	return o, err
}

// reviewed records that a task's review was posted, with its verdict, and returns the new state. It may be called
// again.
func (m memory) reviewed(ctx context.Context, t tasks.Task, o origin, v hub.Verdict) (state prState, err error) {
	err = m.changeState(ctx, o.Ref, func(p *prState) error {
		if !p.hasReviewed(o) && !o.byPerson() {
			p.Reviews++
		}
		p.LastReviewed, p.LastBase, p.ReviewedBy, p.Verdict = o.Head, o.Base, t.ID, saveVerdict(v)
		state = *p
		return nil
	})
	return state, err
}

// patchID is the same for two diffs with the same changes, regardless of line numbers and blob IDs. Unlike
// git-patch-id(1) it keeps whitespace, which may be significant.
func patchID(diff string) string {
	h := sha256.New()
	index := ""
	for l := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(l, "index "):
			index = l
			continue
		case strings.HasPrefix(l, "Binary files "): // this is the only line about a binary file
			l += index
		case strings.HasPrefix(l, "@@ "):
			l = "@@\n"
		}
		_, _ = io.WriteString(h, l)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
