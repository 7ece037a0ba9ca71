package slack

import (
	"errors"
	"sync"
	"time"
)

// inbound is what we know of how events reach us.
type inbound struct {
	mu      sync.Mutex
	last    time.Time // of the last event
	refused time.Time // of the last request with a wrong signature
	links   int       // connections in Socket Mode that Slack has let in
	err     error     // why there is none
}

// Inbound tells when the last event came from Slack, by HTTP or by Socket Mode (zero: none yet), and what keeps it from coming: an error
// when Socket Mode is configured and there is no connection.
func (s *Source) Inbound() (last time.Time, err error) {
	i := s.inbound
	i.mu.Lock()
	defer i.mu.Unlock()
	if s.cfg.AppToken != "" && i.links == 0 {
		err = i.err
	}
	return i.last, err
}

func newInbound() *inbound { return &inbound{err: errors.New("not connected to Slack yet")} }

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

// here counts a connection that Slack has let in, gone one that has ended.
func (i *inbound) here() { i.add(1) }
func (i *inbound) gone() { i.add(-1) }

func (i *inbound) add(n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.links += n
}

// lost says why a connection was not made or has ended.
func (i *inbound) lost(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.err = err
}
