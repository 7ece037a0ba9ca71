package githubfake

import (
	"encoding/json"
	"slices"
)

// echo queues the webhooks of what a client did. Like GitHub's they come after
// the client has its answer; unlike GitHub's they come in order. There is no
// order between them and what people do (OpenPR, Comment), which is delivered
// at once: waiting here would block a receiver that calls those methods.
func (s *Server) echo(events ...event) {
	if s.cfg.Quiet || s.hook == "" || s.closed {
		return
	}
	for _, e := range events {
		if slices.Contains(s.cfg.Events, e.name) {
			s.echoes = append(s.echoes, e)
		}
	}
	if len(s.echoes) > 0 && !s.echoing {
		s.echoing = true
		s.work.Go(s.drainEchoes)
	}
}

// drainEchoes sends until nothing is queued. It reports no receiver that
// refuses: as on GitHub, that shows in Deliveries only.
func (s *Server) drainEchoes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.echoes) > 0 && s.ctx.Err() == nil {
		e := s.echoes[0]
		s.echoes = s.echoes[1:]
		s.mu.Unlock()
		_, _ = s.Send(s.ctx, e.name, json.RawMessage(e.payload), SendOptions{})
		s.mu.Lock()
	}
	s.echoing = false
	s.changed()
}

// Settled reports whether every webhook for what clients did has been sent and
// answered. Wait for it before asserting that nothing more happens.
func (s *Server) Settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.echoing
}
