package slackfake

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Message is one message in its current form, or, as an argument of Mention, Post and Seed, the form to store.
type Message struct {
	Channel     string          // id of the channel it is in
	TS          string          // its id in the channel; given out by the server, ignored in what is to be stored
	ThreadTS    string          // ts of the thread's root; empty for a root and for a message without a thread
	User        string          // id of the author, a bot's user included; empty for a webhook's
	BotID       string          // empty for people
	Text        string          // at most 40,000 characters are kept
	Blocks      json.RawMessage // a JSON array; nil if there are none
	Metadata    json.RawMessage // {"event_type", "event_payload"}; or nil
	Attachments json.RawMessage // a JSON array: forwarded messages, previews of links, parts of alerts; of others than the bot
	Files       []File          // that the bot uploaded or a user sent with it
	Edits       int             // how often it was updated
	EditedAt    []time.Time     // when, in order
}

// record is a message and what other people did to it. All of it is guarded by Server.mu.
type record struct {
	Message
	to        string     // of an ephemeral message: who sees it
	reactions []reaction // in the order they were first added
}

type reaction struct {
	Name  string   `json:"name"`
	Users []string `json:"users"`
	Count int      `json:"count"`
}

// Messages is the current state of a thread: its root, then the replies, in ts order. An empty threadTS gives what
// is at the top
// level of the channel, in ts order too.
func (s *Server) Messages(channel, threadTS string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copies(s.messages, func(r *record) bool {
		return r.Channel == channel && (r.ThreadTS == threadTS || threadTS != "" && r.TS == threadTS)
	})
}

// Ephemeral is what the bot showed to this user alone in the channel, in ts order.
func (s *Server) Ephemeral(channel, user string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copies(s.ephemeral, func(r *record) bool { return r.Channel == channel && r.to == user })
}

// Seed stores a message that no event tells of, as what was said before the app came, and returns its ts. It may be
// the bot's own:
// then give it the User and BotID of the Config. The message is not linted.
func (s *Server) Seed(m Message) (ts string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.store(m)
	if err != nil {
		return "", err
	}
	return r.TS, nil
}

// store adds what a person, or another bot, says. The caller holds mu.
func (s *Server) store(m Message) (*record, error) {
	if _, ok := s.channel(m.Channel); !ok {
		return nil, fmt.Errorf("store message: no channel %q", m.Channel)
	}
	if _, ok := s.user(m.User); !ok && (m.User != "" || m.BotID == "") { // a webhook is no user
		return nil, fmt.Errorf("store message: no user %q", m.User)
	}
	if m.ThreadTS != "" {
		if root := s.find(m.Channel, m.ThreadTS); root == nil || root.ThreadTS != "" {
			return nil, fmt.Errorf("store message: no thread %q in %s", m.ThreadTS, m.Channel)
		}
	}
	m.Files = s.share(m.Files)
	return s.add(m), nil
}

// add gives the message its ts and keeps it. The caller holds mu.
func (s *Server) add(m Message) *record {
	m.TS, m.Edits, m.EditedAt = s.nextTS(), 0, nil
	r := &record{Message: m}
	s.messages = append(s.messages, r)
	s.notify()
	return r
}

// find returns nil if there is no such message. The caller holds mu.
func (s *Server) find(channel, ts string) *record {
	i := slices.IndexFunc(s.messages, func(r *record) bool { return r.Channel == channel && r.TS == ts })
	if i < 0 {
		return nil
	}
	return s.messages[i]
}

// replies is the thread under a root, without the root, in ts order. The caller holds mu.
func (s *Server) replies(channel, root string) []*record {
	var out []*record
	for _, r := range s.messages {
		if r.Channel == channel && r.ThreadTS == root {
			out = append(out, r)
		}
	}
	return out
}

// copies of the messages, for the world outside. The caller holds mu.
func (s *Server) copies(from []*record, keep func(*record) bool) []Message {
	var out []Message
	for _, r := range from {
		if keep(r) {
			out = append(out, r.Message) // its slices are replaced or appended to, never written over
		}
	}
	return out
}

// micros reads a ts, or any Unix time with at most six decimals. A float64 would lose the last digit of a ts.
func micros(ts string) (int64, bool) {
	sec, frac, _ := strings.Cut(ts, ".")
	if len(frac) > 6 {
		return 0, false
	}
	n, err := strconv.ParseInt(sec+frac+strings.Repeat("0", 6-len(frac)), 10, 64)
	return n, err == nil && n >= 0
}
