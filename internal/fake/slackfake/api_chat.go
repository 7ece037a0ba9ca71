package slackfake

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxUpdate is the characters of text in a chat.update, where Slack refuses instead of cutting (its reference;
// seratch/ChatGPT-in-Slack#102): a client that edits long messages must keep the fallback text short.
const maxUpdate = 4_000

func (s *Server) chatPostMessage(f url.Values) (answer, error) {
	m, warnings, err := s.draft(f)
	if err != nil {
		return nil, err
	}
	if err := s.thread(&m, f.Get("thread_ts")); err != nil {
		return nil, err
	}
	r := s.add(m)
	delete(s.statuses, m.Channel+"/"+m.ThreadTS)
	return warned(answer{"channel": r.Channel, "ts": r.TS, "message": s.wire(r, true)}, warnings), nil
}

// thread puts the bot's new message into a thread, if one is named.
func (s *Server) thread(m *Message, ts string) error {
	if ts == "" {
		return nil
	}
	switch root := s.find(m.Channel, ts); {
	case root == nil: // Slack silently posts to the channel when the root is gone (slack-go#1571)
	case root.ThreadTS != "":
		// Slack's reference says to avoid a reply's ts; what becomes of it varies. From us it is always a mistake.
		return apiError{code: "cannot_reply_to_message"}
	default:
		m.ThreadTS = ts
	}
	return nil
}

func (s *Server) chatPostEphemeral(f url.Values) (answer, error) {
	m, warnings, err := s.draft(f)
	if err != nil {
		return nil, err
	}
	if _, ok := s.user(f.Get("user")); !ok {
		return refuse("user_not_in_channel")
	}
	m.TS, m.ThreadTS = s.nextTS(), f.Get("thread_ts")
	s.ephemeral = append(s.ephemeral, &record{Message: m, to: f.Get("user")})
	return warned(answer{"message_ts": m.TS}, warnings), nil
}

func (s *Server) chatUpdate(f url.Values) (answer, error) {
	r, err := s.own(f, "cant_update_message")
	if err != nil {
		return nil, err
	}
	if !f.Has("text") && !f.Has("blocks") {
		return refuse("no_text")
	}
	if utf8.RuneCountInString(f.Get("text")) > maxUpdate {
		return refuse("msg_too_long")
	}
	m := r.Message
	if s.cfg.DropBlocks && f.Has("text") {
		m.Blocks = nil
	}
	if _, err := fill(&m, f); err != nil {
		return nil, err
	}
	m.Edits++
	m.EditedAt = append(m.EditedAt, s.cfg.Now())
	r.Message = m
	return answer{"channel": r.Channel, "ts": r.TS, "text": r.Text, "message": s.wire(r, true)}, nil
}

func (s *Server) chatDelete(f url.Values) (answer, error) {
	r, err := s.own(f, "cant_delete_message")
	if err != nil {
		return nil, err
	}
	s.messages = slices.DeleteFunc(s.messages, func(other *record) bool { return other == r })
	return answer{"channel": r.Channel, "ts": r.TS}, nil
}

func (s *Server) chatGetPermalink(f url.Values) (answer, error) {
	r, err := s.message(f, "message_ts")
	if err != nil {
		return nil, err
	}
	link := s.url + "/archives/" + r.Channel + "/p" + strings.ReplaceAll(r.TS, ".", "")
	if r.ThreadTS != "" {
		link += "?thread_ts=" + r.ThreadTS + "&cid=" + r.Channel
	}
	return answer{"channel": r.Channel, "permalink": link}, nil
}

// message is the one that channel and the named argument point to.
func (s *Server) message(f url.Values, arg string) (*record, error) {
	ch, err := s.open(f.Get("channel"))
	if err != nil {
		return nil, err
	}
	r := s.find(ch.ID, f.Get(arg))
	if r == nil {
		return nil, apiError{code: "message_not_found"}
	}
	return r, nil
}

// own is the bot's own message at channel and ts; that of another user is refused with the given code. An ephemeral
// one is never found.
func (s *Server) own(f url.Values, code string) (*record, error) {
	r, err := s.message(f, "ts")
	if err != nil {
		return nil, err
	}
	if r.BotID != s.cfg.BotID {
		return nil, apiError{code: code}
	}
	return r, nil
}
