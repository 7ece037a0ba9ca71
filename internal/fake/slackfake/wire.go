package slackfake

import (
	"cmp"
	"encoding/json"
	"slices"
)

// wireMessage is a message object of the Web API, and with its last three fields the inner event of the Events API.
type wireMessage struct {
	Type         string          `json:"type"`
	SubType      string          `json:"subtype,omitempty"`
	User         string          `json:"user,omitempty"`
	BotID        string          `json:"bot_id,omitempty"`
	Team         string          `json:"team,omitempty"`
	Text         string          `json:"text"`
	TS           string          `json:"ts"`
	ThreadTS     string          `json:"thread_ts,omitempty"`
	ParentUserID string          `json:"parent_user_id,omitempty"`
	ReplyCount   int             `json:"reply_count,omitempty"`
	ReplyUsers   []string        `json:"reply_users,omitempty"`
	LatestReply  string          `json:"latest_reply,omitempty"`
	Blocks       json.RawMessage `json:"blocks,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	Attachments  json.RawMessage `json:"attachments,omitempty"`
	Files        []File          `json:"files,omitempty"`
	Edited       *wireEdited     `json:"edited,omitempty"`
	Reactions    []reaction      `json:"reactions,omitempty"`

	Channel     string `json:"channel,omitempty"`
	ChannelType string `json:"channel_type,omitempty"`
	EventTS     string `json:"event_ts,omitempty"`
}

type wireEdited struct {
	User string `json:"user"`
	TS   string `json:"ts"`
}

// wire gives a message as the Web API does. The caller holds mu.
func (s *Server) wire(r *record, metadata bool) wireMessage {
	w := wireMessage{
		Type: "message", User: r.User, BotID: r.BotID, Team: s.cfg.TeamID, Text: r.Text,
		TS: r.TS, ThreadTS: r.ThreadTS, Blocks: r.Blocks, Attachments: r.Attachments,
		Files: r.Files, Reactions: slices.Clone(r.reactions),
	}
	switch r.User {
	case "USLACKBOT": // see Edit
		w.SubType = "tombstone"
	case "":
		w.SubType = "bot_message"
	}
	if u, ok := s.user(r.User); ok {
		w.Team = u.TeamID
	}
	if metadata {
		w.Metadata = r.Metadata
	}
	if n := len(r.EditedAt); n > 0 {
		w.Edited = &wireEdited{User: cmp.Or(r.User, r.BotID), TS: formatTS(r.EditedAt[n-1].UnixMicro())}
	}
	if r.ThreadTS == "" {
		s.wireRoot(&w, r)
	} else if root := s.find(r.Channel, r.ThreadTS); root != nil {
		w.ParentUserID = root.User
	}
	return w
}

// wireRoot adds what only a thread's root carries: a root names itself as its thread, a message without replies has no
// thread_ts.
func (s *Server) wireRoot(w *wireMessage, r *record) {
	for _, reply := range s.replies(r.Channel, r.TS) {
		w.ThreadTS = r.TS
		w.ReplyCount++
		w.LatestReply = reply.TS
		if !slices.Contains(w.ReplyUsers, reply.User) {
			w.ReplyUsers = append(w.ReplyUsers, reply.User)
		}
	}
}
