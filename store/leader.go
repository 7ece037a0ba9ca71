package store

import (
	"context"
	"crypto/rand"
	"time"
)

// Leader is a candidate for work that one process does for the whole fleet. Leadership is an expiring lock. It avoids
// duplicate work but does not make it safe: after a pause two processes may both believe that they lead. So the store
// must refuse every step of a leader that comes too late.
//
// Methods may be called from any goroutine.
type Leader struct {
	conn *conn
	name string
	who  string
	ttl  time.Duration
}

// Leader returns a candidate for the lead of that name. A leader that stops calling [Leader.Lead] is replaced after
// ttl.
func (s *Store) Leader(name string, ttl time.Duration) *Leader {
	return &Leader{conn: s.conn, name: name, who: rand.Text(), ttl: ttl}
}

// Lead takes the lead if it is free, or renews it. term identifies a period of uninterrupted leadership: a new one
// begins whenever the lead was free, because a leader died or Redis was away. It is empty if another process leads.
func (l *Leader) Lead(ctx context.Context) (term string, err error) {
	r, err := l.conn.run(ctx, "lead", l.name, l.who, l.ttl.Milliseconds())
	return r.text(1), wrapf(err, "lead %s", l.name)
}

// Resign gives the lead up, if this candidate has it.
func (l *Leader) Resign(ctx context.Context) error {
	_, err := l.conn.run(ctx, "resign", l.name, l.who)
	return wrapf(err, "resign from %s", l.name)
}
