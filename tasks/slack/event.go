package slack

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/words"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// envelope wraps an event. It has only the fields that errand needs, because an unexpected form of any field would make
// the rest unreadable, too (slack-go's ParseEvent fails on every event that it does not know).
type envelope struct {
	Type      string `json:"type"`
	Challenge string `json:"challenge"`
	TeamID    string `json:"team_id"`
	EventID   string `json:"event_id"`
	Event     event  `json:"event"`

	odd  error  // which field of Event has an unexpected form
	body []byte // all of it, for fields that few events need
}

// read reads an envelope and the event in it. An error means that the body is not an envelope.
func (e *envelope) read(body []byte) error {
	e.body = body
	err := json.Unmarshal(body, e)
	if odd, ok := errors.AsType[*json.UnmarshalTypeError](err); ok &&
		(odd.Field == "event" || strings.HasPrefix(odd.Field, "event.")) {
		e.odd, err = odd, nil
	}
	return err
}

// The types of events. A mention in a channel comes both as an app_mention and as a message.
const (
	appMention    = "app_mention"
	messageEvent  = "message"
	reactionAdded = "reaction_added"
)

// event is a message event.
type event struct {
	Type        string          `json:"type"`
	SubType     string          `json:"subtype"`
	User        string          `json:"user"`
	BotID       string          `json:"bot_id"`
	Channel     string          `json:"channel"`
	ChannelType string          `json:"channel_type"`
	TS          string          `json:"ts"`
	ThreadTS    string          `json:"thread_ts"`
	Tab         string          `json:"tab"` // of the app's page
	Text        string          `json:"text"`
	Reaction    string          `json:"reaction"`
	Edited      json.RawMessage `json:"edited"`
	content

	again bool // it was counted against the limit of its thread
}

// origin is the message of an event.
func (e envelope) origin(ev event) origin {
	return origin{
		Team: e.TeamID, Channel: ev.Channel, TS: ev.TS, ThreadTS: ev.ThreadTS, User: ev.User,
		Files: ev.allFiles(),
	}
}

// newMessages are the subtypes of new messages: plain ones, with files, and replies that are shown in the channel, too.
var newMessages = []string{"", "file_share", "thread_broadcast"}

// event returns the event inside, or zero. odd says which of its fields has an unexpected form: the others are read
// all the same, so that the type of any event is known.
func (e envelope) event() (ev event, odd error) {
	if e.Type != "event_callback" {
		return event{}, nil
	}
	return e.Event, e.odd
}

// isNewMessage reports whether an event is a message that a user just wrote; false for other events and messages
// (edited, joined, deleted …).
func (e envelope) isNewMessage(ev event, odd error) (ok bool, err error) {
	edited := len(ev.Edited) > 0 && !bytes.Equal(ev.Edited, []byte("null"))
	switch {
	case ev.Type != appMention && ev.Type != messageEvent:
		return false, nil
	case odd != nil:
		return false, notReadable(odd)
	case !slices.Contains(newMessages, ev.SubType) || ev.User == "" || edited:
		return false, nil
	}
	if !teamForm.fits(e.TeamID) || !channelForm.fits(ev.Channel) || !userForm.fits(ev.User) ||
		!isTS(ev.TS) || ev.ThreadTS != "" && !isTS(ev.ThreadTS) {
		return false, notReadable(errors.New("an ID in it does not have the form of Slack's IDs"))
	}
	return true, nil
}

// notReadable returns the error for an event that has another form than errand knows.
func notReadable(why error) error {
	return fmt.Errorf("%w: %w", intake.ErrUnreadable, why)
}

// direct reports whether a message is a direct message to the bot, which need not mention it.
func (ev event) direct() bool { return ev.ChannelType == "im" }

// mayFollow reports whether a message that does not mention the bot may still be for it: a reply in a thread that
// mentions nobody else.
func (ev event) mayFollow(said words.Words) bool {
	return ev.ThreadTS != "" && ev.Type == messageEvent && said.Others == 0
}

// matters reports whether errand may have to act on an event. What people say to each other outside of threads does not
// matter, and is not stored.
func (e envelope) matters() bool {
	ev, _ := e.event()
	switch {
	case ev.Type == messageEvent && (ev.SubType == changed || ev.SubType == deleted):
		_, isRequest, err := e.change()
		return isRequest || err != nil
	case ev.Type == messageEvent:
		return strings.Contains(ev.Text, "<@") || ev.direct() || ev.ThreadTS != ""
	case ev.Type == reactionAdded:
		return ev.Reaction == stopSign
	}
	return ev.Type == appMention || ev.Type == appHomeOpened
}

// withoutToken returns the envelope without the token that old apps verify requests by.
func (e envelope) withoutToken() []byte {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(e.body, &fields) // read has done so
	delete(fields, "token")
	body, _ := json.Marshal(fields) // of JSON: it cannot fail
	return body
}

// The subtypes of message events about an earlier message. A deleted message with replies becomes a tombstone, which
// is a change.
const (
	changed   = "message_changed"
	deleted   = "message_deleted"
	tombstone = "tombstone"
)

// change is an event about a message that was edited or deleted.
type change struct {
	Channel     string  `json:"channel"`
	ChannelType string  `json:"channel_type"`
	DeletedTS   string  `json:"deleted_ts"`
	Message     version `json:"message"`
	Previous    version `json:"previous_message"`
}

// version is a message before or after the change.
type version struct {
	SubType  string `json:"subtype"`
	User     string `json:"user"`
	BotID    string `json:"bot_id"`
	Text     string `json:"text"`
	TS       string `json:"ts"`
	ThreadTS string `json:"thread_ts"`
	content
	Edited struct {
		User string `json:"user"`
		TS   string `json:"ts"`
	} `json:"edited"`
}

// change reads the event inside. It is false if the request is the same: for the bot's own edits, previews of links,
// and edits by others than the author.
func (e envelope) change() (change, bool, error) {
	var body struct {
		Event change `json:"event"`
	}
	err := json.Unmarshal(e.body, &body)
	c := body.Event
	if err != nil {
		return c, false, notReadable(err)
	}
	if !c.isDeletion() && (c.Message.Text == c.Previous.Text || c.Message.Edited.User != c.Message.User ||
		c.Message.User == "") ||
		c.isDeletion() && c.Previous.User == "" {
		return c, false, nil
	}
	ts := c.ts()
	if !teamForm.fits(e.TeamID) || !channelForm.fits(c.Channel) || !isTS(ts) ||
		!userForm.fits(c.author()) || c.Message.ThreadTS != "" && !isTS(c.Message.ThreadTS) {
		return c, false, notReadable(errors.New("an ID in it does not have the form of Slack's IDs"))
	}
	return c, true, nil
}

func (c change) isDeletion() bool { return c.DeletedTS != "" || c.Message.SubType == tombstone }

// ts is the timestamp of the changed message.
func (c change) ts() string { return cmp.Or(c.DeletedTS, c.Message.TS, c.Previous.TS) }

// author is the user who wrote the message.
func (c change) author() string {
	if c.isDeletion() {
		return c.Previous.User
	}
	return c.Message.User
}

// event is the changed message as if it were new.
func (c change) event() event {
	m := c.Message
	ev := event{
		Type: messageEvent, User: m.User, BotID: m.BotID, Channel: c.Channel, ChannelType: c.ChannelType,
		TS: m.TS, ThreadTS: m.ThreadTS, Text: m.Text, content: m.content,
	}
	if ev.ThreadTS == ev.TS { // a message with replies is in its own thread
		ev.ThreadTS = ""
	}
	return ev
}

// addsMention reports whether the new words mention the bot more often than those before.
func (c change) addsMention(now words.Words, us who) bool {
	return now.Ours > words.Slack(c.Previous.Text, us.user).Ours
}

// stopSign is the reaction that stops a request, on the request or on a message about it.
const stopSign = "x"

// reaction is the event of a reaction that a user added to a message.
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

// reaction reads the event inside; false if it is not a stopSign.
func (e envelope) reaction() (reaction, bool, error) {
	var body struct {
		Event reaction `json:"event"`
	}
	err := json.Unmarshal(e.body, &body)
	r := body.Event
	if err != nil {
		return r, false, notReadable(err)
	}
	if r.Reaction != stopSign || r.Item.Type != "message" {
		return r, false, nil
	}
	if !teamForm.fits(e.TeamID) || !channelForm.fits(r.Item.Channel) || !userForm.fits(r.User) ||
		!isTS(r.Item.TS) || !isTS(r.EventTS) {
		return r, false, notReadable(errors.New("an ID in it does not have the form of Slack's IDs"))
	}
	return r, true, nil
}

// origin is the return address of a task: the message that asked for it, and what came with that.
type origin struct {
	Team     string `json:"team"`
	Channel  string `json:"channel"`
	TS       string `json:"ts"`
	ThreadTS string `json:"thread_ts,omitempty"` // empty: the message begins a thread
	User     string `json:"user"`

	Files attachments        `json:"files,omitempty"`
	Pull  *forge.PullRequest `json:"pull,omitempty"`  // the pull request that the message names
	About string             `json:"about,omitempty"` // ts of the message that a shortcut was chosen for
	// it names a branch or a pull request, and the thread was elsewhere before
	Moved bool `json:"moved,omitempty"`
}

func originOf(t tasks.Task) (origin, error) {
	var o origin
	if err := json.Unmarshal(t.Origin, &o); err != nil {
		return o, fmt.Errorf("read origin of task %s: %w", t.ID, err)
	}
	return o, nil
}

func (o origin) json() json.RawMessage {
	b, _ := json.Marshal(o) // strings and numbers only: it cannot fail
	return b
}

// at is the message of the same thread that became the task with that ID, which begins with the message's time.
func (o origin) at(id string) origin {
	return origin{Team: o.Team, Channel: o.Channel, ThreadTS: o.root(), TS: id[:10] + "." + id[10:16]}
}

// root is the timestamp of the message whose thread the task is in.
func (o origin) root() string { return cmp.Or(o.ThreadTS, o.TS) }

// threadName is the name of the message's thread.
func (o origin) threadName() string {
	return fmt.Sprintf("%s/%s/%s/%s", sourceName, o.Team, o.Channel, o.root())
}

// taskID is the ID of the task that the message becomes.
func (o origin) taskID() string { return tasks.NewID(timeOf(o.TS), sourceName, o.Channel) }

// task is what a message asks for, without the place where the agent works.
func (o origin) task(prompt string) tasks.Task {
	return tasks.Task{
		ID: o.taskID(), Source: sourceName, Kind: "mention", Thread: o.threadName(), Class: tasks.Interactive,
		Profile: agent.Write, Actor: o.User, Channel: o.Channel, Prompt: prompt, Origin: o.json(),
		Reply: new(tasks.Reply),
	}
}

// idForm is the form of one kind of Slack's IDs: one of these letters, then capitals and digits. IDs become part of a
// thread's name and of a task's ID, which ignore case.
type idForm string

const (
	teamForm    idForm = "TE"
	channelForm idForm = "CGD"
	userForm    idForm = "UW"
)

// maxSlackID is the longest ID accepted; Slack's have some eleven characters.
const maxSlackID = 31

func (f idForm) fits(id string) bool {
	return len(id) > 1 && len(id) <= maxSlackID && strings.IndexByte(string(f), id[0]) >= 0 &&
		strings.Trim(id[1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// isTS reports whether a text has the form of a message's timestamp: 1700000000.000100.
func isTS(ts string) bool {
	seconds, micros, _ := strings.Cut(ts, ".")
	return len(seconds) == 10 && len(micros) == 6 && strings.Trim(seconds+micros, "0123456789") == ""
}

// timeOf is the time of a well-formed timestamp. No two messages of a channel share its microseconds.
func timeOf(ts string) time.Time {
	micros, _ := strconv.ParseInt(strings.ReplaceAll(ts, ".", ""), 10, 64)
	return time.UnixMicro(micros)
}
