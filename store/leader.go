package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"
)

// Leader is a candidate for doing, alone in the fleet, what one process does for all. Leadership is a lock that expires: it keeps work from
// being done twice, and does not make it safe to do. Two may believe that they lead, one of them after a pause, so every step that a leader
// takes must be refused by the store where it comes too late.
//
// Methods may be called from any goroutine.
type Leader struct {
	db   *db
	name string
	who  string
	ttl  time.Duration
}

// Leader makes a candidate for the lead of that name. A leader that stops calling [Leader.Lead] is replaced after ttl.
func (s *Store) Leader(name string, ttl time.Duration) *Leader {
	return &Leader{db: s.db, name: name, who: rand.Text(), ttl: ttl}
}

// Lead takes the lead if it is free, or renews it. term names the time through which this candidate has led without interruption: a new one
// begins whenever the lead was free, be it that a leader died or that Redis was away. It is empty when another leads.
func (l *Leader) Lead(ctx context.Context) (term string, err error) {
	r, err := l.db.run(ctx, "lead", l.name, l.who, l.ttl.Milliseconds())
	if err != nil {
		return "", fmt.Errorf("lead %s: %w", l.name, err)
	}
	return r.text(1), nil
}

// Resign gives the lead up, if this candidate has it.
func (l *Leader) Resign(ctx context.Context) error {
	if _, err := l.db.run(ctx, "resign", l.name, l.who); err != nil {
		return fmt.Errorf("resign from %s: %w", l.name, err)
	}
	return nil
}
