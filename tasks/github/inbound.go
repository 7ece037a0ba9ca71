package github

import (
	"context"
	"sync"
	"time"

	"github.com/errand-fleet/errand/internal/doctor"
)

// inbound is what we know of how webhooks reach us.
type inbound struct {
	mu      sync.Mutex
	last    time.Time // of the last one with a right signature
	refused time.Time // of the last one with a wrong one
}

// Inbound tells when the last webhook came from GitHub; zero: none yet. There is no connection that could be lost.
func (s *Source) Inbound() (last time.Time, err error) {
	s.inbound.mu.Lock()
	defer s.inbound.mu.Unlock()
	return s.inbound.last, nil
}

func (i *inbound) event(at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last = at
}

func (i *inbound) refuse(at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refused = at
}

// wrong reports whether the last webhook had a wrong signature.
func (i *inbound) wrong() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.refused.After(i.last)
}

// Diagnose reports how GitHub is set up, and whether webhooks arrive.
func (s *Source) Diagnose(ctx context.Context) []doctor.Finding {
	list := s.forge.Diagnose(ctx)
	if s.inbound.wrong() {
		list = append(list, doctor.Finding{
			What: "GitHub: the last webhook had a wrong signature", Why: "If GitHub sent it, no event is accepted.",
			Remedy: "Compare GITHUB_WEBHOOK_SECRET with the secret of the webhook.",
		})
	}
	return list
}
