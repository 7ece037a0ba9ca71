package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// reactionAdded is the event of a sign that somebody puts on a message.
const reactionAdded = "reaction_added"

// stopSign on a request, or on what we show of it, stops it.
const stopSign = "x"

// reaction is a sign, as its event tells of it.
type reaction struct {
	User     string `json:"user"`
	Reaction string `json:"reaction"`
	ItemUser string `json:"item_user"`
	EventTS  string `json:"event_ts"`
	Item     struct {
		Type    string `json:"type"`
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	} `json:"item"`
}

// reaction reads the event inside; false is one that says nothing to us.
func (e envelope) reaction() (reaction, bool, error) {
	var body struct {
		Event reaction `json:"event"`
	}
	err := json.Unmarshal(e.body, &body)
	r := body.Event
	if err != nil {
		return r, false, fmt.Errorf("read event %s: %w", e.EventID, err)
	}
	if r.Reaction != stopSign || r.Item.Type != "message" {
		return r, false, nil
	}
	if !teamForm.fits(e.TeamID) || !channelForm.fits(r.Item.Channel) || !userForm.fits(r.User) ||
		!isTS(r.Item.TS) || !isTS(r.EventTS) {
		return r, false, fmt.Errorf("read event %s: an ID in it is not of Slack's form", e.EventID)
	}
	return r, true, nil
}

// takeReaction stops the task that a message with the sign is about, if it has not ended, nor been tried again since, and whoever put it there
// may. On all others people put it for reasons of their own.
func (s *Source) takeReaction(ctx context.Context, d *tasks.Desk, env envelope) (after func(context.Context), _ error) {
	r, ok, err := env.reaction()
	if err != nil {
		s.log.Warn("event dropped", "err", err)
	}
	if !ok {
		return nil, nil
	}
	o := origin{Team: env.TeamID, Channel: r.Item.Channel, TS: r.Item.TS, User: r.User}
	st, err := s.marked(ctx, d, o, r.ItemUser)
	if errors.Is(err, tasks.ErrNotFound) || err == nil && (st.Ending != nil || st.Retried.After(timeOf(r.EventTS))) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	said := intake.NotAllowed
	may, err := s.mayStop(ctx, d, r.User, st)
	if err != nil {
		return nil, err
	}
	if may {
		if _, err := d.Cancel(ctx, st.Task.ID, s.nameOf(ctx, r.User)); err != nil {
			return nil, err
		}
		said = intake.Stopping
	}
	if of, err := originOf(st.Task); err == nil {
		o.ThreadTS = of.root()
	}
	return func(ctx context.Context) { s.tell(ctx, o, said) }, nil
}

// marked is the task of a message: the one that it became, or the one that a message of ours tells of. tasks.ErrNotFound if there is none.
func (s *Source) marked(ctx context.Context, d *tasks.Desk, o origin, author string) (tasks.Status, error) {
	st, err := d.Status(ctx, s.id(o))
	if !errors.Is(err, tasks.ErrNotFound) {
		return st, err
	}
	us, failed := s.me.get(ctx)
	if failed != nil || author != us.user {
		return st, errors.Join(failed, err)
	}
	// The ts of a reply gives that reply, perhaps among others.
	messages, _, failed := s.page(ctx, o, "", "", "")
	if failed != nil {
		return st, failed
	}
	for _, m := range messages {
		if mark := markerOf(m); m.Timestamp == o.TS && m.BotID == us.bot && tasks.ValidID(mark.task) {
			return d.Status(ctx, mark.task)
		}
	}
	return st, err
}
