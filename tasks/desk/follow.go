package desk

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Logged is a stored event of a run.
type Logged struct {
	ID    string // pass it to Follow to continue after this event
	Event agent.Event
	End   bool // the task has ended; Event is empty
}

// Follow yields a task's events after the one with the ID after ("" for all), and then new ones until the task has
// ended. If ctx ends first, it yields an error.
func (d *Desk) Follow(ctx context.Context, id, after string) iter.Seq2[Logged, error] {
	return func(yield func(Logged, error) bool) {
		if err := d.may(ctx, id, policy.See); err != nil {
			yield(Logged{}, err)
			return
		}
		for e, err := range d.store.Events.Follow(ctx, id, after) {
			l := Logged{ID: e.ID, End: e.End}
			switch {
			case err != nil:
				err = d.notFound(id, err)
			case !e.End:
				if json.Unmarshal(e.Data, &l.Event) != nil {
					l.Event = agent.Event{
						Kind: agent.Notice, Text: "This version of errand cannot read an event that is stored here.",
					}
				}
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}
