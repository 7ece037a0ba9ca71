package slackfake

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// The types of envelopes.
const (
	EventsAPI     = "events_api"
	Interactive   = "interactive"
	SlashCommands = "slash_commands"
)

// frame is an envelope, or a message of Slack's own, on its way to the app.
type frame struct {
	EnvelopeID             string          `json:"envelope_id,omitempty"`
	Type                   string          `json:"type"`
	Payload                json.RawMessage `json:"payload,omitempty"`
	AcceptsResponsePayload bool            `json:"accepts_response_payload"`
	RetryAttempt           int             `json:"retry_attempt"`
	RetryReason            string          `json:"retry_reason"`
}

// Push sends an envelope through Socket Mode and returns what the app answered with its ack. It goes to the newest
// connection that was not asked to disconnect. An error means that it was not acked within Config.AnswerWithin, or that
// there was no connection.
func (s *Server) Push(ctx context.Context, kind string, payload any, retry int) (json.RawMessage, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("push envelope: %w", err)
	}
	f := frame{Type: kind, Payload: body, AcceptsResponsePayload: kind != EventsAPI, RetryAttempt: retry}
	if retry > 0 {
		f.RetryReason = "timeout"
	}
	acked := make(chan json.RawMessage, 1)
	s.mu.Lock()
	s.envelopes++
	f.EnvelopeID = fmt.Sprintf("%08x-0000-4000-8000-%012x", s.envelopes, s.envelopes)
	s.unacked[f.EnvelopeID] = acked
	var to *socket
	for _, k := range s.sockets {
		if !k.leaving {
			to = k
		}
	}
	if to != nil && !to.muted { // what Slack says into a connection that is dead goes nowhere
		err = to.send(f)
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.unacked, f.EnvelopeID)
		s.notify()
	}()
	if to == nil {
		return nil, fmt.Errorf("push envelope %s: no connection", f.EnvelopeID)
	}
	if err != nil {
		return nil, fmt.Errorf("push envelope %s: %w", f.EnvelopeID, err)
	}
	late := time.NewTimer(s.cfg.AnswerWithin)
	defer late.Stop()
	select {
	case answer := <-acked:
		return answer, nil
	case <-late.C:
		return nil, fmt.Errorf("push envelope %s: not acked", f.EnvelopeID)
	case <-ctx.Done():
		return nil, fmt.Errorf("push envelope %s: %w", f.EnvelopeID, context.Cause(ctx))
	}
}

// acknowledge takes a message of the app's. One that is no ack of an envelope that waits for it is counted: see
// StrayAcks.
func (s *Server) acknowledge(message []byte) {
	var ack struct {
		EnvelopeID string          `json:"envelope_id"`
		Payload    json.RawMessage `json:"payload"`
	}
	_ = json.Unmarshal(message, &ack)
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.unacked[ack.EnvelopeID]
	delete(s.unacked, ack.EnvelopeID)
	if waiting == nil || len(message) > maxAck {
		s.strayAcks++
		s.notify()
		return
	}
	waiting <- ack.Payload
}

// maxAck is the bytes beyond which Slack silently ignores an ack (slack-go, socketmode.go).
const maxAck = 20 << 10

// StrayAcks is how many messages of the app's were no ack, too large for one, or too late.
func (s *Server) StrayAcks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.strayAcks
}
