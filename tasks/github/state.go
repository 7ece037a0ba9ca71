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
	"github.com/errand-fleet/errand/tasks/intake"
)

// How often errand reviews a pull request, and how often it works on one, before it waits for a person.
const (
	maxReviews = 5
	maxRounds  = 5
)

// enough is said when it has come to that.
const enough = "I have worked on this pull request as often as I do without anybody asking, so somebody has to go on from here. Mention me with " +
	"what is to be done, or comment `/resume`."

// maxBegun bounds what is remembered of the automatic work on one pull request: far more than maxRounds lets anybody reach unless people
// keep the work going for months, and then the keys are of heads long gone.
const maxBegun = 500

// prState is what is remembered of a pull request between its tasks, whoever runs them. It is changed by changeState alone.
type prState struct {
	Paused   bool      `json:"paused,omitempty"` // somebody said so: nothing happens by itself
	PausedBy string    `json:"paused_by,omitempty"`
	Said     time.Time `json:"said,omitzero"` // when somebody last said to pause or to resume

	Obeyed []string `json:"obeyed,omitempty"` // comments with orders that were carried out, as IDs of tasks; the newest

	Head   string    `json:"head,omitempty"`   // the newest one that was seen
	At     time.Time `json:"at,omitzero"`      // when GitHub last changed what was seen: older events say nothing new
	Review string    `json:"review,omitempty"` // the task that reviews Head; empty: none does

	Reviews      int    `json:"reviews,omitempty"`       // automatic ones so far
	LastReviewed string `json:"last_reviewed,omitempty"` // head of the last review, or a later one that changes the same
	ReviewedBy   string `json:"reviewed_by,omitempty"`   // the task of that review
	Verdict      kept   `json:"verdict,omitzero"`        // what that review's light says

	Patches map[string]string `json:"patches,omitempty"` // what LastReviewed and Head change, by patchID

	Rounds int               `json:"rounds,omitempty"` // of automatic work since a person spoke
	Begun  map[string]string `json:"begun,omitempty"`  // the tasks of automatic work, by what each is for

	Approved   string `json:"approved,omitempty"` // head of a stranger's that a maintainer lets run
	ApprovedBy string `json:"approved_by,omitempty"`
}

// begin gives what key stands for to a task, unless another one has it already, and reports whether it has it now. The same task may ask
// again.
func (p *prState) begin(key, task string) bool {
	if p.Begun[key] == "" {
		p.note(key, task)
	}
	return p.Begun[key] == task
}

// note is begin in place of whichever task had it.
func (p *prState) note(key, task string) {
	if p.Begun == nil || len(p.Begun) >= maxBegun {
		p.Begun = map[string]string{}
	}
	p.Begun[key] = task
}

// tired says why nothing more is done without anybody asking, or nothing.
func (p *prState) tired() string {
	switch {
	case p.Paused:
		return "The pull request was paused by " + p.PausedBy + "."
	case p.Rounds >= maxRounds:
		return enough
	}
	return ""
}

// memory holds what is remembered of each pull request between its tasks: its state, the findings of its reviews, and how far its
// conversation was answered.
type memory struct {
	store intake.Memory
	log   *slog.Logger
}

func (m memory) stateMemo(o origin) intake.Memo[prState] {
	return intake.Memo[prState]{Memory: m.store, Name: "github/" + o.String() + "/state", Log: m.log}
}

// state reads what is remembered of a pull request; the zero value if it is new.
func (m memory) state(ctx context.Context, o origin) (prState, error) {
	return m.stateMemo(o).Load(ctx)
}

// changeState changes what is remembered of a pull request. change may be called several times if others change it meanwhile; its error
// leaves everything as it is and is returned.
func (m memory) changeState(ctx context.Context, o origin, change func(*prState) error) error {
	return m.stateMemo(o).Change(ctx, change)
}

// seen is what is remembered of the conversation on a pull request.
type seen struct {
	Until    time.Time `json:"until,omitzero"`     // of the newest comment that was answered: all before it was read with it
	Last     spot      `json:"last,omitzero"`      // that comment
	Stranger bool      `json:"stranger,omitempty"` // somebody was told that errand does not work for him
}

func (m memory) cursor(o origin) intake.Memo[seen] {
	return intake.Memo[seen]{Memory: m.store, Name: "github/" + o.String() + "/seen", Log: m.log}
}

// answered notes that a comment was answered.
func (m memory) answered(ctx context.Context, o origin, p spot, at time.Time) error {
	return m.cursor(o).Change(ctx, func(v *seen) error {
		if at.After(v.Until) {
			v.Until, v.Last = at, p
		}
		return nil
	})
}

// firstStranger reports whether nobody was told yet on a pull request that errand does not work for him, and notes that somebody is.
func (m memory) firstStranger(ctx context.Context, o origin) (first bool, err error) {
	err = m.cursor(o).Change(ctx, func(v *seen) error {
		first, v.Stranger = !v.Stranger, true
		return nil
	})
	return first, err
}

// byPerson reports whether somebody wanted the task: in so many words, by the label, or by requesting a review.
func (o origin) byPerson() bool {
	return o.Asked != nil || o.ApprovedBy != "" || o.Action == requestedReview
}

// requestedReview is the action by which somebody requests our review. GitHub lets triagers do so as well.
const requestedReview = "review_requested"

// pausing is what the summary says below all else, from the last review on that comes without anybody asking.
func (p *prState) pausing() string {
	if p.Reviews < maxReviews {
		return ""
	}
	return fmt.Sprintf("\n\nAfter %d reviews, pushes are not reviewed any more. Comment `/review` for another review, or `/resume` to have one of every push again.", p.Reviews)
}

// unchanged refuses a review that would say nothing new: of a head that somebody has had reviewed while this one waited, and of a push that
// changes nothing of what the pull request changes, as a rebase or a merge of the base alone. What was said before holds.
func (s *Source) unchanged(ctx context.Context, gh *github.Client, t tasks.Task, o origin) error {
	if o.byPerson() {
		return nil
	}
	switch p, err := s.memory.state(ctx, o); {
	case err != nil:
		return err
	case p.LastReviewed == o.Head && p.ReviewedBy != t.ID: // its own was tried again by somebody
		return &tasks.InputError{Sentence: "The head was reviewed before."}
	case o.Action != "synchronize" && o.Action != looked:
		return nil
	}
	owner, name := o.path()
	diff, _, err := gh.PullRequests.GetRaw(ctx, owner, name, o.Number, github.RawOptions{Type: github.Diff})
	if hub.StatusCode(err) == http.StatusNotAcceptable {
		return nil // it is too large for GitHub
	}
	if err != nil {
		return s.sorted("read the changes of "+o.String(), err)
	}
	var reviewed string
	err = s.memory.changeState(ctx, o, func(p *prState) error {
		reviewed = p.sameAs(o.Head, patchID(diff))
		return nil
	})
	if err == nil && reviewed != "" {
		err = &tasks.InputError{Sentence: "Nothing has changed since the review of " + hub.ShortSHA(reviewed) + "."}
	}
	return err
}

// sameAs notes what a head changes, and gives the reviewed one that changes the same, or nothing.
func (p *prState) sameAs(head, patch string) (reviewed string) {
	if last := p.LastReviewed; last != "" && last != head && p.Patches[last] == patch {
		reviewed, p.LastReviewed = last, head
	}
	p.Patches = map[string]string{p.LastReviewed: p.Patches[p.LastReviewed], head: patch}
	delete(p.Patches, "")
	return reviewed
}

// reviewed notes that a task's review of a head was posted and how its light ends, and gives what is remembered now. Again it changes nothing.
func (m memory) reviewed(ctx context.Context, t tasks.Task, o origin, v hub.Verdict) (state prState, err error) {
	err = m.changeState(ctx, o, func(p *prState) error {
		if p.LastReviewed != o.Head && !o.byPerson() {
			p.Reviews++
		}
		p.LastReviewed, p.ReviewedBy, p.Verdict = o.Head, t.ID, keep(v)
		state = *p
		return nil
	})
	return state, err
}

// patchID is the same for two diffs if they change the same: where in the files and in which version of them does not count. It is what
// git-patch-id(1) is about, but for blanks, which may mean something.
func patchID(diff string) string {
	h := sha256.New()
	index := ""
	for l := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(l, "index "):
			index = l
			continue
		case strings.HasPrefix(l, "Binary files "): // nothing else tells what is in them
			l += index
		case strings.HasPrefix(l, "@@ "):
			l = "@@\n"
		}
		_, _ = io.WriteString(h, l)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
