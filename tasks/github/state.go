package github

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// maxRounds is how often errand works on a pull request by itself before it waits for a person.
const maxRounds = 5

// maxChecks bounds what is remembered of the automatic work on one pull request: far more than maxRounds lets anybody reach unless people
// keep the work going for months, and then the keys are of heads long gone.
const maxChecks = 500

// prState is what is remembered of a pull request between its tasks, whoever runs them. It is changed by changeState alone.
type prState struct {
	Paused   bool   `json:"paused,omitempty"` // somebody said so: nothing happens by itself
	PausedBy string `json:"paused_by,omitempty"`

	Reviews      int    `json:"reviews,omitempty"`       // automatic ones so far
	LastReviewed string `json:"last_reviewed,omitempty"` // head of the last review

	Rounds int             `json:"rounds,omitempty"` // of automatic work since a person spoke
	Checks map[string]bool `json:"checks,omitempty"` // keys of what was done: of a head and what was wrong with it, say

	Approved   string `json:"approved,omitempty"` // head of a stranger's that a maintainer lets run
	ApprovedBy string `json:"approved_by,omitempty"`
}

// done reports whether the thing with this key was done already, and notes that it is.
func (p *prState) done(key string) bool {
	if p.Checks[key] {
		return true
	}
	if p.Checks == nil || len(p.Checks) >= maxChecks {
		p.Checks = map[string]bool{}
	}
	p.Checks[key] = true
	return false
}

// state reads what is remembered of a pull request; of one that is new, nothing.
func (s *Source) state(ctx context.Context, o origin) (prState, error) {
	body, err := s.cfg.Memory.Memo(ctx, stateMemo(o))
	if err != nil {
		return prState{}, fmt.Errorf("read state of %s: %w", o, err)
	}
	return readState(body)
}

// changeState lets change correct what is remembered of a pull request. It may be called several times, when others change it meanwhile; its
// error leaves everything as it is and is returned.
func (s *Source) changeState(ctx context.Context, o origin, change func(*prState) error) error {
	err := s.cfg.Memory.ChangeMemo(ctx, stateMemo(o), func(old json.RawMessage) (json.RawMessage, error) {
		p, err := readState(old)
		if err != nil {
			return nil, err
		}
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

func readState(body json.RawMessage) (prState, error) {
	var p prState
	if body == nil {
		return p, nil
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return p, fmt.Errorf("read state: %w", err)
	}
	return p, nil
}

// stateMemo names the memo.
func stateMemo(o origin) string { return "github/" + o.String() + "/state" }
