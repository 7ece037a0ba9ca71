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
	EventID   string `json:"event_id"`
	Event     event  `json:"event"`
	// Old apps verify requests by it. As it is written.
	Token json.RawMessage `json:"token"`

	odd  error  // which field of Event has an unexpected form
	body []byte // all of it
}

// read reads an envelope and the event in it. An error means that the body is not an envelope.
func (e *envelope) read(body []byte) error {
	e.body = body
	err := json.Unmarshal(body, e)
	for _, v := range []*version{&e.Event.version, &e.Event.Message, &e.Event.Previous} {
		v.User = cmp.Or(v.User, v.BotID) // what a webhook or a workflow posts has no user
	}
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

// version is a message, or one before or after an edit.
type version struct {
	SubType  string `json:"subtype"`
	User     string `json:"user"`
	BotID    string `json:"bot_id"`
	Text     string `json:"text"`
	TS       string `json:"ts"`
	ThreadTS string `json:"thread_ts"`
	content
	Edited *struct {
		User string `json:"user"`
		TS   string `json:"ts"`
	} `json:"edited"`
}

// event is an event of any type that errand handles.
type event struct {
	Type        string `json:"type"`
	Channel     string `json:"channel"`
	ChannelType string `json:"channel_type"`
	version

	// Of an edit or a deletion.
	DeletedTS string  `json:"deleted_ts"`
	Message   version `json:"message"`
	Previous  version `json:"previous_message"`

	// Of a reaction by a user.
	Reaction string `json:"reaction"`
	ItemUser string `json:"item_user"`
	EventTS  string `json:"event_ts"`
	Item     struct {
		Type    string `json:"type"`
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	} `json:"item"`

	Tab   string `json:"tab"` // of the app's page
	team  string // the bot's
	again bool   // an attempt has failed: it was counted against the limit of its thread
	fresh bool   // it has the words of now
}

// origin is the message of an event.
func (ev event) origin() origin {
	return origin{
		Team: ev.team, Channel: ev.Channel, TS: ev.TS, ThreadTS: ev.ThreadTS, User: ev.User, Files: ev.allFiles(),
	}
}

// newMessages are the subtypes of new messages: plain ones, with files, replies that are shown in the channel, too, and
// those of webhooks and workflows.
var newMessages = []string{"", "file_share", "thread_broadcast", "bot_message"}

// isNewMessage reports whether an event is a message that a user just wrote; false for other events and messages
// (edited, joined, deleted …).
func (e envelope) isNewMessage() (ok bool, err error) {
	ev := e.Event
	switch {
	case ev.Type != appMention && ev.Type != messageEvent:
		return false, nil
	case e.odd != nil:
		return false, notReadable(e.odd)
	case !slices.Contains(newMessages, ev.SubType) || ev.User == "" || ev.Edited != nil:
		return false, nil
	}
	if !channelForm.fits(ev.Channel) || !authorForm.fits(ev.User) || !isTS(ev.TS) ||
		ev.ThreadTS != "" && !isTS(ev.ThreadTS) {
		return false, notReadable(errOddID)
	}
	return true, nil
}

var errOddID = errors.New("an ID in it does not have the form of Slack's IDs")

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
	switch ev := e.Event; {
	case e.Type != "event_callback":
		return false
	case ev.Type == messageEvent && (ev.SubType == changed || ev.SubType == deleted):
		isRequest, err := e.isChange()
		return isRequest || err != nil
	case ev.Type == messageEvent:
		return strings.Contains(ev.Text, "<@") || ev.direct() || ev.ThreadTS != ""
	case ev.Type == reactionAdded:
		return ev.Reaction == stopSign
	default:
		return ev.Type == appMention || ev.Type == appHomeOpened
	}
}

// withoutToken returns the envelope with an empty token.
func (e envelope) withoutToken() []byte {
	if !bytes.HasPrefix(e.Token, []byte(`"`)) {
		return e.body
	}
	return bytes.ReplaceAll(e.body, e.Token, []byte(`""`))
}

// The subtypes of message events about an earlier message. A deleted message with replies becomes a tombstone, which
// is a change.
const (
	changed   = "message_changed"
	deleted   = "message_deleted"
	tombstone = "tombstone"
)

// isChange reports whether an event changes or takes back a request. It is false if the request is the same: for the
// bot's own edits, previews of links, and edits by others than the author.
func (e envelope) isChange() (bool, error) {
	ev, m := e.Event, e.Event.Message
	switch {
	case e.odd != nil:
		return false, notReadable(e.odd)
	case ev.isDeletion() && ev.Previous.User == "", !ev.isDeletion() && !ev.isEdit():
		return false, nil
	case !channelForm.fits(ev.Channel) || !isTS(ev.changedTS()) || !authorForm.fits(ev.author()) ||
		m.ThreadTS != "" && !isTS(m.ThreadTS):
		return false, notReadable(errOddID)
	}
	return true, nil
}

// isEdit reports whether the author has just edited the message. If Slack does not say what it was before, the time
// tells: what Slack changes by itself, for example when a reply comes, is later than the author's last edit.
func (ev event) isEdit() bool {
	m := ev.Message
	if m.User == "" || m.Edited == nil || m.Edited.User != m.User {
		return false
	}
	edited := m.Edited.TS
	if ev.showsBefore() || !isTS(edited) || !isTS(ev.TS) {
		return ev.Message.Text != ev.Previous.Text
	}
	return timeOf(ev.TS).Sub(timeOf(edited)).Abs() < editDelay
}

// editDelay is more than the time from an edit to its event.
const editDelay = 10 * time.Second

// showsBefore reports whether an event says what the message was before.
func (ev event) showsBefore() bool { return ev.Previous.TS != "" }

func (ev event) isDeletion() bool { return ev.DeletedTS != "" || ev.Message.SubType == tombstone }

// changedTS is the timestamp of the changed message.
func (ev event) changedTS() string { return cmp.Or(ev.DeletedTS, ev.Message.TS, ev.Previous.TS) }

// author is the user who wrote the changed message.
func (ev event) author() string {
	if ev.isDeletion() {
		return ev.Previous.User
	}
	return ev.Message.User
}

// edited is the changed message as if it were new.
func (ev event) edited() event {
	ev.version = ev.Message
	if ev.ThreadTS == ev.TS { // a message with replies is in its own thread
		ev.ThreadTS = ""
	}
	return ev
}

// addsMention reports whether the new words mention the bot more often than those before, if the event says these.
func (ev event) addsMention(now words.Words, us who) bool {
	return ev.showsBefore() && now.Ours > words.Slack(ev.Previous.Text, us.user).Ours
}

// stopSign is the reaction that stops a request, on the request or on a message about it.
const stopSign = "x"

// isStop reports whether an event is a stopSign on a message.
func (e envelope) isStop() (bool, error) {
	ev := e.Event
	switch {
	case ev.Reaction != stopSign:
		return false, nil
	case e.odd != nil:
		return false, notReadable(e.odd)
	case ev.Item.Type != "message":
		return false, nil
	case !channelForm.fits(ev.Item.Channel) || !userForm.fits(ev.User) || !isTS(ev.Item.TS) || !isTS(ev.EventTS):
		return false, notReadable(errOddID)
	}
	return true, nil
}

// origin is the return address of a task: the message that asked for it, and what came with that.
type origin struct {
	// Team is the bot's own workspace or organisation. Events name the one that a shared channel or its author is from,
	// so that one thread would have several names.
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

// task is what a message asks for, without its origin and the place where the agent works.
func (o origin) task(prompt string) tasks.Task {
	return tasks.Task{
		ID: o.taskID(), Source: sourceName, Kind: "mention", Thread: o.threadName(), Class: tasks.Interactive,
		Profile: agent.Write, Actor: o.User, Channel: o.Channel, Prompt: prompt, Reply: new(tasks.Reply),
	}
}

// idForm is the form of one kind of Slack's IDs: one of these letters, then capitals and digits. IDs become part of a
// thread's name and of a task's ID, which ignore case.
type idForm string

const (
	channelForm idForm = "CGD"
	userForm    idForm = "UW"
	authorForm  idForm = userForm + "B" // or the bot_id of a message without a user
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
