package github

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// seen is what is remembered of the conversation on a pull request.
type seen struct {
	Until    time.Time `json:"until,omitzero"`     // of the newest comment that was answered: all before it was read with it
	Last     spot      `json:"last,omitzero"`      // that comment
	Stranger bool      `json:"stranger,omitempty"` // somebody was told that errand does not work for him
}

func seenMemo(o origin) string { return "github/" + o.String() + "/seen" }

// seen reads it.
func (s *Source) seen(ctx context.Context, o origin) (seen, error) {
	stored, err := s.cfg.Memory.Memo(ctx, seenMemo(o))
	if err != nil {
		return seen{}, fmt.Errorf("read what was answered on %s: %w", o, err)
	}
	var v seen
	tasks.ReadMemo(s.cfg.Log, seenMemo(o), stored, &v)
	return v, nil
}

// changeSeen changes it; change says whether there is anything to keep.
func (s *Source) changeSeen(ctx context.Context, o origin, change func(*seen) bool) error {
	err := s.cfg.Memory.ChangeMemo(ctx, seenMemo(o), func(stored json.RawMessage) (json.RawMessage, error) {
		var v seen
		if tasks.ReadMemo(s.cfg.Log, seenMemo(o), stored, &v); !change(&v) {
			return nil, nil
		}
		return json.Marshal(v)
	})
	if err != nil {
		return fmt.Errorf("note what was answered on %s: %w", o, err)
	}
	return nil
}

// answered notes that a comment was answered.
func (s *Source) answered(ctx context.Context, o origin, p spot, at time.Time) error {
	return s.changeSeen(ctx, o, func(v *seen) bool {
		if !at.After(v.Until) {
			return false
		}
		v.Until, v.Last = at, p
		return true
	})
}

// firstStranger reports whether nobody was told yet on a pull request that errand does not work for him, and notes that somebody is.
func (s *Source) firstStranger(ctx context.Context, o origin) (first bool, err error) {
	err = s.changeSeen(ctx, o, func(v *seen) bool {
		first, v.Stranger = !v.Stranger, true
		return first
	})
	return first, err
}
