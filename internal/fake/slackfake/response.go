package slackfake

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// How long an interaction may be answered at its response_url, and how often (Slack's reference of interactions).
const (
	responseLife = 30 * time.Minute
	responseUses = 5
)

// response is where an interaction with a message may be answered. It is guarded by Server.mu.
type response struct {
	record *record
	user   string
	at     time.Time
	uses   int
}

// newResponse gives out a response_url. The address is the secret: it takes no token. The caller holds mu.
func (s *Server) newResponse(r *record, user string) (address string) {
	ticket := rand.Text()
	s.responses[ticket] = &response{record: r, user: user, at: s.cfg.Now()}
	return s.url + "/actions/" + s.cfg.TeamID + "/" + ticket
}

// serveResponse replaces the message, deletes it, or shows another to who did something. It is recorded among the calls
// as "response_url".
func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Text            string          `json:"text"`
		Blocks          json.RawMessage `json:"blocks"`
		ReplaceOriginal bool            `json:"replace_original"`
		DeleteOriginal  bool            `json:"delete_original"`
	}
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&body) != nil {
		http.Error(w, "invalid_payload", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	call := &Call{
		Method: "response_url", Time: s.cfg.Now(), Form: url.Values{"text": {body.Text}}, Status: http.StatusOK,
	}
	s.calls = append(s.calls, call)
	defer s.notify()
	refuse := func(status int, code string) {
		call.Status, call.Error = status, code
		reply{status: status, code: code}.write(w)
	}
	to := s.responses[r.PathValue("ticket")]
	if to == nil {
		refuse(http.StatusNotFound, "invalid_url")
		return
	}
	if to.uses++; to.uses > responseUses || s.cfg.Now().Sub(to.at) > responseLife {
		refuse(http.StatusNotFound, "used_url")
		return
	}
	if problems := lint(body.Blocks, body.Text); !body.DeleteOriginal && len(problems) > 0 {
		refuse(http.StatusBadRequest, problems[0].code)
		return
	}
	if noBlocks(body.Blocks) {
		body.Blocks = nil
	}
	switch {
	case body.DeleteOriginal:
		gone := func(other *record) bool { return other == to.record }
		s.messages, s.ephemeral = slices.DeleteFunc(s.messages, gone), slices.DeleteFunc(s.ephemeral, gone)
	case body.ReplaceOriginal:
		to.record.Text, to.record.Blocks = body.Text, body.Blocks
		to.record.Edits++
	default:
		m := to.record.Message
		m.TS, m.Text, m.Blocks, m.Metadata = s.nextTS(), body.Text, body.Blocks, nil
		s.ephemeral = append(s.ephemeral, &record{Message: m, to: to.user})
	}
	reply{}.write(w)
}
