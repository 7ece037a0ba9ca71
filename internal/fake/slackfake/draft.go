package slackfake

import (
	"encoding/json"
	"net/url"
	"strings"
)

// maxMetadata is in bytes. Slack's reference speaks of a limit without its number; this one is a guess.
const maxMetadata = 16_384

// draft is the bot's new message, without its thread.
func (s *Server) draft(f url.Values) (m Message, warnings []string, err error) {
	to := f.Get("channel")
	if _, ok := s.user(to); ok {
		to = "D" + to[1:] // the direct message with a person may be named by their ID (chat.postMessage)
	}
	ch, err := s.writable(to)
	if err != nil {
		return Message{}, nil, err
	}
	m = Message{Channel: ch.ID, User: s.cfg.BotUserID, BotID: s.cfg.BotID}
	warnings, err = fill(&m, f)
	return m, warnings, err
}

// fill writes the fields that were sent over those of the message: an absent field keeps what was there, an empty one
// clears it.
func fill(m *Message, f url.Values) (warnings []string, err error) {
	if f.Has("attachments") {
		return nil, apiError{code: "invalid_attachments"} // not modelled, and better said than swallowed
	}
	if f.Has("text") {
		m.Text = f.Get("text")
	}
	if f.Has("blocks") {
		m.Blocks = json.RawMessage(f.Get("blocks"))
	}
	if f.Has("metadata") {
		if m.Metadata, err = readMetadata(f.Get("metadata")); err != nil {
			return nil, err
		}
	}
	refused := apiError{}
	for _, p := range lint(m.Blocks, m.Text) {
		if p.code == textTruncated {
			warnings = append(warnings, p.code)
			m.Text = string([]rune(m.Text)[:maxText])
			continue
		}
		if refused.code == "" {
			refused.code = p.code
		}
		if p.pointer != "" { // only faults of blocks come with details
			refused.details = append(refused.details, p.detail())
		}
	}
	if refused.code != "" {
		return nil, refused
	}
	if noBlocks(m.Blocks) {
		m.Blocks = nil
	}
	return warnings, nil
}

// readMetadata refuses what slack-go would happily send: a field without its name or payload. "{}" clears.
func readMetadata(raw string) (json.RawMessage, error) {
	if strings.TrimSpace(raw) == "{}" {
		return nil, nil
	}
	var meta struct {
		Type    string          `json:"event_type"`
		Payload *map[string]any `json:"event_payload"`
	}
	switch err := json.Unmarshal([]byte(raw), &meta); {
	case err != nil || meta.Type == "" || meta.Payload == nil:
		return nil, apiError{code: "invalid_metadata_format"}
	case len(raw) > maxMetadata:
		return nil, apiError{code: "metadata_too_large"}
	}
	return json.RawMessage(raw), nil
}

// warned adds Slack's warnings to an answer that succeeded nevertheless.
func warned(a answer, warnings []string) answer {
	if len(warnings) > 0 {
		a["warning"] = strings.Join(warnings, ",")
		a["response_metadata"] = answer{"warnings": warnings}
	}
	return a
}
