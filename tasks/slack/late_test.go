package slack

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/rights"
)

// deliver sends the events of a mention of Ann with the words that it had at first.
func (f *frontDoor) deliver(ts, text string, want int) {
	f.Helper()
	for _, kind := range []string{slackfake.AppMention, slackfake.MessageEvent} {
		f.send(map[string]any{
			"type": kind, "user": ann, "text": text, "ts": ts, "channel": general, "channel_type": "channel",
		}, want)
	}
}

// live returns the prompts of the tasks that have not ended.
func (f *frontDoor) live() (prompts []string) {
	f.Helper()
	for _, one := range f.tasks() {
		if f.state(one.ID).Ending == nil {
			prompts = append(prompts, one.Prompt)
		}
	}
	return prompts
}

// What comes before the event of a request counts for it nevertheless: an edit takes its place or makes it none, and a
// stop of somebody who may stop it withdraws it. It says nothing about requests after it.
func TestOvertakenRequests(t *testing.T) {
	t.Parallel()
	const one, two = at + "one", at + "two"
	say := func(user, text string) func(*frontDoor, string) {
		return func(f *frontDoor, ts string) { f.say(user, general, ts, text) }
	}
	edit := func(text string) func(*frontDoor, string) {
		return func(f *frontDoor, ts string) { f.edit(ts, text) }
	}
	cross := func(user string) func(*frontDoor, string) {
		return func(f *frontDoor, ts string) {
			if err := f.React(f.Context(), user, general, ts, stopSign); err != nil {
				f.Error(err)
			}
		}
	}
	for name, c := range map[string]struct {
		text   string
		change func(f *frontDoor, ts string)
		want   []string
	}{
		"unchanged":              {one, func(*frontDoor, string) {}, []string{"one"}},
		"edited":                 {one, edit(two), []string{"two"}},
		"edited to be none":      {one, edit("never mind"), nil},
		"a command":              {at + "status", edit(two), nil},
		"deleted":                {one, edit(""), nil},
		"deleted below an entry": {one, func(f *frontDoor, ts string) { f.say(bob, general, ts, "hm"); f.edit(ts, "") }, nil},
		"stopped":                {one, say(ann, at+"stop"), nil},
		"stopped without a name": {one, say(ann, "Stop!"), nil},
		"stopped by another":     {one, say(bob, at+"stop"), []string{"one"}},
		"told another to stop":   {one, say(ann, "<@"+bob+"> stop"), []string{"one"}},
		"a cross":                {one, cross(ann), nil},
		"a cross by another":     {one, cross(bob), []string{"one"}},
		"may not be read": {one, func(f *frontDoor, ts string) {
			f.edit(ts, two)
			f.Fail("conversations.replies", slackfake.Failure{Error: missingScope, Times: -1})
		}, []string{"one"}},
		"is read later": {one, func(f *frontDoor, ts string) {
			f.edit(ts, two)
			f.Fail("conversations.replies", slackfake.Failure{Error: "internal_error", Times: 2})
			f.deliver(ts, one, http.StatusServiceUnavailable)
		}, []string{"two"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			later := func() time.Time { return time.Now().Add(2 * lateAfter) }
			f := newFrontDoor(t, Config{Now: later}, rights.Policy{})
			ts := f.seed(slackfake.Message{Text: c.text})
			c.change(f, ts)
			f.deliver(ts, c.text, http.StatusOK)
			equal(t, "requests", f.live(), c.want)
			f.Heal("conversations.replies")
			if len(f.Messages(general, ts)) == 0 {
				ts = ""
			}
			f.say(ann, general, ts, at+"three")
			equal(t, "after it", f.tasks()[0].Prompt, "three")
		})
	}
}

// The event of a change may be interpreted while that of its message is, and find no task. It comes once more.
func TestChangeWhileItsMessageIsRead(t *testing.T) {
	t.Parallel()
	for name, event := range map[string]func(ts string) map[string]any{
		"deleted": func(ts string) map[string]any {
			return map[string]any{
				"type": "message", "subtype": deleted, "channel": general, "ts": ts, "deleted_ts": ts,
				"previous_message": map[string]any{"type": "message", "user": ann, "text": at + "one", "ts": ts},
			}
		},
		"edited": func(ts string) map[string]any {
			return map[string]any{
				"type": "message", "subtype": changed, "channel": general, "ts": ts,
				"previous_message": map[string]any{"user": ann, "text": at + "one", "ts": ts},
				"message": map[string]any{
					"user": ann, "text": at + "two", "ts": ts, "edited": map[string]any{"user": ann, "ts": ts},
				},
			}
		},
		"a cross": func(ts string) map[string]any {
			return map[string]any{
				"type": "reaction_added", "user": ann, "reaction": stopSign, "item_user": ann, "event_ts": ts,
				"item": map[string]any{"type": "message", "channel": general, "ts": ts},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t, Config{}, rights.Policy{})
			ts := f.seed(slackfake.Message{Text: at + "one"})
			body, err := json.Marshal(f.Envelope(event(ts)))
			if err != nil {
				t.Fatal(err)
			}
			interpret := f.source.listener.interpreter.interpret
			err = interpret(t.Context(), intake.Event{Body: body})
			if wait, ok := errors.AsType[*tasks.ErrLater](err); !ok || time.Until(wait.At) > changePause {
				t.Errorf("the first attempt: %v", err)
			}
			f.deliver(ts, at+"one", http.StatusOK)
			if err := interpret(t.Context(), intake.Event{Body: body, Again: true}); err != nil {
				t.Error(err)
			}
			want := map[string][]string{"edited": {"two"}}
			equal(t, "requests", f.live(), want[name])
			for range 2 { // of a message that never becomes a request
				f.send(event(f.recently()), http.StatusOK)
			}
		})
	}
}

// An event that is tried again counts as late at once. Slack is asked once for both events of a mention.
func TestRequestIsTriedAgain(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	root := f.seed(slackfake.Message{Text: "stop"}) // is about what was before it
	ts := f.seed(slackfake.Message{Text: at + "one", ThreadTS: root})
	f.edit(ts, at+"two")
	for _, kind := range []string{slackfake.AppMention, slackfake.MessageEvent} {
		body, err := json.Marshal(f.Envelope(map[string]any{
			"type": kind, "user": ann, "text": at + "one", "ts": ts, "thread_ts": root, "channel": general,
			"channel_type": "channel",
		}))
		if err == nil {
			err = f.source.listener.interpreter.interpret(t.Context(), intake.Event{Body: body, Again: true})
		}
		if err != nil {
			t.Error(err)
		}
	}
	equal(t, "prompt", f.one().Prompt, "two")
	equal(t, "calls", len(f.Calls("conversations.replies")), 1)
}

// An edit asks anew: a stop that came before it is not meant.
func TestStopBeforeAnEdit(t *testing.T) {
	t.Parallel()
	later := func() time.Time { return time.Now().Add(2 * lateAfter) }
	f := newFrontDoor(t, Config{Now: later}, rights.Policy{})
	ts := f.say(ann, general, "", "one")
	f.say(ann, general, ts, "stop")
	f.edit(ts, at+"two")
	f.settle()
	equal(t, "requests", f.live(), []string{"two"})
}
