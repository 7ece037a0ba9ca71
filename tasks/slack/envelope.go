package slack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// envelope is what Slack wraps an event in: as much of it as we need, because a field of an odd form anywhere would make the rest
// unreadable too (slack-go's ParseEvent fails on every event it does not know).
type envelope struct {
	Type      string `json:"type"`
	Challenge string `json:"challenge"`
	TeamID    string `json:"team_id"`
	EventID   string `json:"event_id"`
	Event     event  `json:"event"`

	odd  error  // which field of Event has another form than it should
	body []byte // all of it, for what is read of few events
}

// read reads an envelope with the event in it, in one go: most are messages. An error means that it is none.
func (e *envelope) read(body []byte) error {
	e.body = body
	err := json.Unmarshal(body, e)
	if odd, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && (odd.Field == "event" || strings.HasPrefix(odd.Field, "event.")) {
		e.odd, err = odd, nil
	}
	return err
}

// The events that are served. In a channel a mention comes as both.
const (
	appMention   = "app_mention"
	messageEvent = "message"
)

// event is a message, as the events tell of it.
type event struct {
	Type        string          `json:"type"`
	SubType     string          `json:"subtype"`
	User        string          `json:"user"`
	BotID       string          `json:"bot_id"`
	Channel     string          `json:"channel"`
	ChannelType string          `json:"channel_type"`
	TS          string          `json:"ts"`
	ThreadTS    string          `json:"thread_ts"`
	Text        string          `json:"text"`
	Edited      json.RawMessage `json:"edited"`
	Files       attachments     `json:"files"`
}

// fresh are the subtypes of messages that somebody wrote just now: plain ones, with files, and replies that are shown in the channel, too.
var fresh = []string{"", "file_share", "thread_broadcast"}

// event is the event inside, zero if it is none. odd says which of its fields has another form than it should: the others are read all
// the same, so that of any event the kind is known.
func (e envelope) event() (ev event, odd error) {
	if e.Type != "event_callback" {
		return event{}, nil
	}
	return e.Event, e.odd
}

// message reads a message that somebody wrote just now. It is false for what is not served: other kinds of events, and other messages
// (edited, joined, deleted …). An error is for the log: Slack sending it again would not help.
func (e envelope) message(ev event, odd error) (ok bool, err error) {
	edited := len(ev.Edited) > 0 && !bytes.Equal(ev.Edited, []byte("null"))
	switch {
	case ev.Type != appMention && ev.Type != messageEvent:
		return false, nil
	case odd != nil:
		return false, fmt.Errorf("read event %s: %w", e.EventID, odd)
	case !slices.Contains(fresh, ev.SubType) || ev.User == "" || edited:
		return false, nil
	}
	if !teamForm.fits(e.TeamID) || !channelForm.fits(ev.Channel) || !userForm.fits(ev.User) ||
		!isTS(ev.TS) || ev.ThreadTS != "" && !isTS(ev.ThreadTS) {
		return false, fmt.Errorf("read event %s: an ID in it is not of Slack's form", e.EventID)
	}
	return true, nil
}

// direct reports whether a message was written to us alone: nobody has to be mentioned there.
func (ev event) direct() bool { return ev.ChannelType == "im" }

// follows reports whether a message that does not mention us may be for us all the same: a reply in a thread that speaks to nobody else.
// text is what is written in it besides our name.
func (ev event) follows(text string) bool {
	return ev.ThreadTS != "" && ev.Type == messageEvent && !call.MatchString(hidden(text))
}

// us is who of ours the event was sent to, zero if it does not say.
func (e envelope) us() who {
	var told struct {
		Authorizations []struct {
			TeamID string `json:"team_id"`
			UserID string `json:"user_id"`
			IsBot  bool   `json:"is_bot"`
		} `json:"authorizations"`
	}
	_ = json.Unmarshal(e.body, &told) // of another form: it does not say
	for _, a := range told.Authorizations {
		if a.IsBot && userForm.fits(a.UserID) {
			return who{user: a.UserID, team: a.TeamID}
		}
	}
	return who{}
}

// idForm is the form of one kind of Slack's IDs: one of these letters, then capitals and digits. IDs become part of a thread's name and of a
// task's ID, where upper and lower case are the same.
type idForm string

const (
	teamForm    idForm = "TE"
	channelForm idForm = "CGD"
	userForm    idForm = "UW"
)

// maxSlackID bounds an ID; Slack's have some eleven characters.
const maxSlackID = 31

func (f idForm) fits(id string) bool {
	return len(id) > 1 && len(id) <= maxSlackID && strings.IndexByte(string(f), id[0]) >= 0 &&
		strings.Trim(id[1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// isTS reports whether a text has the form of a message's time: 1700000000.000100.
func isTS(ts string) bool {
	seconds, micros, _ := strings.Cut(ts, ".")
	return len(seconds) == 10 && len(micros) == 6 && strings.Trim(seconds+micros, "0123456789") == ""
}

// timeOf is the time in a well-formed ts, exact: no two messages of a channel share its microseconds.
func timeOf(ts string) time.Time {
	micros, _ := strconv.ParseInt(strings.ReplaceAll(ts, ".", ""), 10, 64)
	return time.UnixMicro(micros)
}
