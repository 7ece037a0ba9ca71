package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// The subtypes of a message event that tells of an earlier message. Where replies stand below a message that was deleted, a tombstone takes
// its place, which is a change.
const (
	changed   = "message_changed"
	deleted   = "message_deleted"
	tombstone = "tombstone"
)

// change is what became of a message, as its event tells of it.
type change struct {
	Channel     string  `json:"channel"`
	ChannelType string  `json:"channel_type"`
	DeletedTS   string  `json:"deleted_ts"`
	Message     version `json:"message"`
	Previous    version `json:"previous_message"`
}

// version is a message as it is, or was.
type version struct {
	SubType  string      `json:"subtype"`
	User     string      `json:"user"`
	BotID    string      `json:"bot_id"`
	Text     string      `json:"text"`
	TS       string      `json:"ts"`
	ThreadTS string      `json:"thread_ts"`
	Files    attachments `json:"files"`
	Edited   struct {
		User string `json:"user"`
		TS   string `json:"ts"`
	} `json:"edited"`
}

// change reads the event inside. It is false for what changes nothing that was asked for: our own edits, previews of links, edits by
// somebody else than the author.
func (e envelope) change() (change, bool, error) {
	var body struct {
		Event change `json:"event"`
	}
	err := json.Unmarshal(e.body, &body)
	c := body.Event
	if err != nil {
		return c, false, fmt.Errorf("read event %s: %w", e.EventID, err)
	}
	if !c.isDeletion() && (c.Message.Text == c.Previous.Text || c.Message.Edited.User != c.Message.User || c.Message.User == "") ||
		c.isDeletion() && c.Previous.User == "" {
		return c, false, nil
	}
	ts := c.ts()
	if !teamForm.fits(e.TeamID) || !channelForm.fits(c.Channel) || !isTS(ts) ||
		!userForm.fits(c.author()) || c.Message.ThreadTS != "" && !isTS(c.Message.ThreadTS) {
		return c, false, fmt.Errorf("read event %s: an ID in it is not of Slack's form", e.EventID)
	}
	return c, true, nil
}

func (c change) isDeletion() bool { return c.DeletedTS != "" || c.Message.SubType == tombstone }

// ts is the time of the message that has changed.
func (c change) ts() string { return cmp.Or(c.DeletedTS, c.Message.TS, c.Previous.TS) }

// author is who has written the message.
func (c change) author() string {
	if c.isDeletion() {
		return c.Previous.User
	}
	return c.Message.User
}

// event is the message as if it had been written just now.
func (c change) event() event {
	m := c.Message
	ev := event{
		Type: messageEvent, User: m.User, BotID: m.BotID, Channel: c.Channel, ChannelType: c.ChannelType,
		TS: m.TS, ThreadTS: m.ThreadTS, Text: m.Text, Files: m.Files,
	}
	if ev.ThreadTS == ev.TS { // with replies below it a message is in its own thread
		ev.ThreadTS = ""
	}
	return ev
}

// takeChange follows a request that its author changes or deletes.
func (s *Source) takeChange(ctx context.Context, d *tasks.Desk, env envelope) (after func(context.Context), _ error) {
	c, ok, err := env.change()
	if err != nil {
		s.log.Warn("event dropped", "err", err)
	}
	if !ok || !s.cfg.Access.admits(c.event()) {
		return nil, nil
	}
	st, err := d.Status(ctx, s.id(origin{Channel: c.Channel, TS: c.ts()}))
	known := !errors.Is(err, tasks.ErrNotFound)
	switch {
	case known && err != nil:
		return nil, err
	case known && st.Task.Actor != c.author():
		return nil, nil
	case c.isDeletion():
		if known {
			_, err = d.Withdraw(ctx, st.Task.ID)
		} else {
			err = s.forget(ctx, s.id(origin{Channel: c.Channel, TS: c.ts()}))
		}
		return nil, err
	}
	if !known {
		return s.unasked(ctx, d, env, c)
	}
	return s.rewritten(ctx, d, env, c, st.Task)
}

// unasked takes the new words of what is no task: of a request that waits for its repository they are its own. Otherwise they are a
// request only if we are mentioned more often than before.
func (s *Source) unasked(ctx context.Context, d *tasks.Desk, env envelope, c change) (after func(context.Context), _ error) {
	ev := c.event()
	us, err := s.us(ctx, env, ev)
	if err != nil {
		return nil, err
	}
	if undecided, err := s.waits(ctx, s.id(origin{Channel: ev.Channel, TS: ev.TS})); err != nil || !undecided && !c.calls(us) {
		return nil, err
	}
	ev.Type = appMention // which did not come when it was written, and does not count now that it is edited
	return s.hear(ctx, d, env, ev)
}

// calls reports whether we are mentioned more often than before.
func (c change) calls(us who) bool {
	return mentions(c.Message.Text, us.user) > mentions(c.Previous.Text, us.user)
}

// rewritten takes the new words of a task. Of one that is over they are a request only if we are mentioned more often than before.
func (s *Source) rewritten(ctx context.Context, d *tasks.Desk, env envelope, c change, was tasks.Task) (after func(context.Context), _ error) {
	ev := c.event()
	us, err := s.us(ctx, env, ev)
	if err != nil {
		return nil, err
	}
	text, _ := cutMention(ev.Text, us.user)
	said := decode(text)
	if _, ok := intake.ParseWord(said); ok || said == "" {
		return nil, nil
	}
	o := origin{Team: env.TeamID, Channel: ev.Channel, TS: ev.TS, ThreadTS: ev.ThreadTS, User: ev.User}
	if err = s.check(ctx, us, ev); err == nil {
		err = s.pace(ctx, ev, o, false)
	}
	var note string
	if err == nil {
		note, err = s.amend(ctx, d, message{o, said, ev.Files}, was, c.calls(us), c.Message.Edited.TS)
	}
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		note, err = input.Sentence, nil
	}
	if _, ok := errors.AsType[forbidden](err); ok {
		return nil, nil
	}
	if note != "" {
		after = func(ctx context.Context) { s.tell(ctx, o, note) }
	}
	return after, err
}

// What is said of a request that was changed. Of one that is at work the thread is told.
const (
	rewords = "I take your request as it reads now."
	anew    = "I take this as a new request."
)

// amend gives the desk the new words of a task and says what is to be told of that. Where they leave a choice of repositories, that is made.
func (s *Source) amend(ctx context.Context, d *tasks.Desk, m message, was tasks.Task, again bool, edit string) (note string, err error) {
	thread, err := s.recall(ctx, d, m.origin)
	if err != nil {
		return "", err
	}
	t, err := s.request(ctx, m, thread)
	if _, open := errors.AsType[*undecided](err); open {
		t, err = placed(t, was.Repo), nil
	}
	if err != nil {
		return "", err
	}
	done, err := d.Amend(ctx, t, edit)
	switch {
	case err != nil:
		return "", err
	case done == tasks.Replaced:
		return rewords, nil
	case done == tasks.TooLate && again:
		t.ID = tasks.Edited(t.ID, edit)
		_, err = d.Submit(ctx, t)
		return anew, err
	}
	return "", nil
}
