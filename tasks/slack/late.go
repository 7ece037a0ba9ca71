package slack

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/internal/words"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// Events are interpreted in any order: while an API fails or no front door runs, the event of a request may come after
// that of its edit, its deletion or a stop. A late request is therefore read from Slack as it is by then. A change of a
// message that is no task comes once more, after a pause in which an attempt at the message that is under way ends.
const (
	lateAfter   = 10 * time.Second
	changePause = 30 * time.Second
)

// comeAgain returns an error that lets the event of a change come once more.
func (in *interpreter) comeAgain(change event) error {
	if change.again {
		return nil
	}
	return &tasks.ErrLater{At: in.now().Add(changePause), Why: "its message may become a request"}
}

// present returns a request as it is now. It is false if its author has deleted it, or if somebody who may stop it has
// done so. What the app may not read is taken to be the same.
func (in *interpreter) present(ctx context.Context, o origin, ev event, me who) (now event, ok bool, err error) {
	ev.fresh = true
	if _, err = in.desk.Status(ctx, o.taskID()); !errors.Is(err, tasks.ErrNotFound) {
		return ev, err == nil, err // the other event of a mention has come
	}
	list, _, err := in.page(ctx, o, slack.GetConversationRepliesParameters{Oldest: o.TS, Inclusive: true})
	switch kind := refusalOf(err); {
	case kind == ofThread:
		return ev, false, nil
	case kind == ofCredential || kind == ofPlace:
		return ev, true, nil
	case err != nil:
		return ev, false, err
	}
	since := o.TS
	if ev.Edited != nil { // it asks anew: a stop before it is not meant
		since = ev.Edited.TS
	}
	stops := func(user string) bool { return in.guard.controls(user, tasks.Task{Actor: ev.User}) }
	for _, m := range list {
		word, _ := intake.ParseWord(words.Slack(m.Text, me.user).Text)
		switch isStop := word == intake.Stop || word == intake.Cancel; {
		case m.Timestamp == o.TS && m.SubType != tombstone:
			ok = !slices.ContainsFunc(m.Reactions, func(r slack.ItemReaction) bool {
				return r.Name == stopSign && slices.ContainsFunc(r.Users, stops)
			})
			if m.Edited != nil && m.Edited.User == ev.User {
				ev.Text, ev.content = m.Text, contentOf(m)
			}
		case m.Timestamp > since && isStop && stops(m.User):
			return ev, false, nil
		}
	}
	return ev, ok, nil
}
