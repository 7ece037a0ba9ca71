package github

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/tasks"
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

// state reads what is remembered of a pull request; of one that is new, nothing.
func (s *Source) state(ctx context.Context, o origin) (prState, error) {
	body, err := s.cfg.Memory.Memo(ctx, stateMemo(o))
	if err != nil {
		return prState{}, fmt.Errorf("read state of %s: %w", o, err)
	}
	var p prState
	tasks.ReadMemo(s.cfg.Log, stateMemo(o), body, &p)
	return p, nil
}

// changeState lets change correct what is remembered of a pull request. It may be called several times, when others change it meanwhile; its
// error leaves everything as it is and is returned.
func (s *Source) changeState(ctx context.Context, o origin, change func(*prState) error) error {
	err := s.cfg.Memory.ChangeMemo(ctx, stateMemo(o), func(old json.RawMessage) (json.RawMessage, error) {
		var p prState
		tasks.ReadMemo(s.cfg.Log, stateMemo(o), old, &p)
		if err := change(&p); err != nil {
			return nil, err
		}
		body, err := json.Marshal(p)
		if err != nil || bytes.Equal(body, old) {
			return nil, err // nothing to write
		}
		return body, nil
	})
	if err != nil {
		return fmt.Errorf("change state of %s: %w", o, err)
	}
	return nil
}

// stateMemo names the memo.
func stateMemo(o origin) string { return "github/" + o.String() + "/state" }
