package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// workerTTL is how long a worker counts as alive after a heartbeat. It sends one every 5 s.
const workerTTL = 15 * time.Second

// Worker is the state that a worker publishes.
type Worker struct {
	ID, Host, Version   string
	Pool                string `json:",omitempty"` // whose tasks it takes; empty: the default one
	Pid, Slots, Running int    // Running of Slots are taken
	Memory              int64  `json:",omitempty"` // bytes available for further runs; 0 = unknown
	Started             time.Time
	Seen                time.Time       `json:"-"` // of the last beat, by Redis' clock; Beat ignores it
	Draining            bool            // takes no new tasks
	Taking              bool            `json:"-"`          // takes tasks now, and so shares the polls of its pool
	Cordoned            bool            `json:",omitempty"` // takes no new tasks, because of a Cordon
	Cordon              *Halt           `json:"-"`          // who cordoned it; nil: it is not. Beat ignores it
	Health              json.RawMessage `json:",omitempty"` // of its CLI; opaque
	Credential          string          `json:",omitempty"` // name of its model credential; see [Credential]
	Notices             []Finding       `json:",omitempty"` // about its configuration
	Sources             []string        `json:",omitempty"` // that it is set up for; none: unknown
	// in force, without secrets, to find differences; none: unknown
	Settings     map[string]string `json:",omitempty"`
	URL          string            `json:",omitempty"` // where front doors on other machines can request logs
	Environments []Environment     `json:",omitempty"` // on its machine: the last used, at most MaxEnvironments
}

// defaultPool names the default pool in keys.
const defaultPool = "default"

// Pulse is the reply to a heartbeat.
type Pulse struct {
	Taking   int  // workers of its pool that take tasks, with this one
	Cordoned bool // this one takes no tasks; see [Halts.Cordon]
}

// Beat records that the worker is alive for the next 15 s, and whether it takes tasks.
func (s *Workers) Beat(ctx context.Context, w Worker) (Pulse, error) {
	state, err := json.Marshal(w)
	if err != nil {
		return Pulse{}, fmt.Errorf("beat %s: %w", w.ID, err)
	}
	r, err := s.run(ctx, "beat", w.ID, state, workerTTL.Milliseconds(), w.Host, cmp.Or(w.Pool, defaultPool),
		w.Taking)
	if err != nil {
		return Pulse{}, fmt.Errorf("beat %s: %w", w.ID, err)
	}
	return Pulse{r.number(1), r.text(2) == "1"}, nil
}

// List lists the live workers, by ID.
func (s *Workers) List(ctx context.Context) ([]Worker, error) {
	var index *redis.ZSliceCmd
	var cordons *redis.MapStringStringCmd
	if _, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		index, cordons = p.ZRangeWithScores(ctx, s.key.workers(), 0, -1), p.HGetAll(ctx, s.cordoned())
		return nil
	}); err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	seen := index.Val()
	if len(seen) == 0 {
		return nil, nil
	}
	at := func(z redis.Z) time.Time { return time.UnixMicro(int64(z.Score)) }
	names := make([]string, len(seen))
	for i, z := range seen {
		names[i] = s.key.worker(fmt.Sprint(z.Member))
	}
	states, err := s.redis.MGet(ctx, names...).Result()
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	var workers []Worker
	for i, z := range seen {
		var w Worker
		// The index may name a dead worker until another worker's beat trims it.
		if state := reply(states).text(i); state != "" {
			if json.Unmarshal([]byte(state), &w) != nil { // written by another version; the worker is alive
				w = Worker{ID: fmt.Sprint(z.Member), Health: json.RawMessage(`"unreadable"`)}
			}
			w.Seen = at(z)
			for _, name := range []string{w.ID, w.Host} {
				if value, ok := cordons.Val()[name]; ok && w.Cordon == nil {
					h := halt(value)
					w.Cordon = &h
				}
			}
			workers = append(workers, w)
		}
	}
	slices.SortFunc(workers, func(a, b Worker) int { return cmp.Compare(a.ID, b.ID) })
	return workers, nil
}

// Bounds of inquiries.
const (
	inquiryTTL   = 30 * time.Second // nothing waits longer for a reply
	maxInquiries = 1000
)

// inquiry is a question that any worker of a pool can answer.
type inquiry struct {
	Key      string          `json:"key"`
	Question json.RawMessage `json:"question"`
}

// Inquire sends a question to any free worker of a pool and waits for the reply until ctx ends, which is the error. It
// then withdraws the question unless a worker has it already. The key identifies the question: while an earlier reply
// with that key is kept, Inquire returns that reply.
func (s *Workers) Inquire(ctx context.Context, pool, key string, question json.RawMessage) (json.RawMessage, error) {
	answer, err := s.replied(ctx, key)
	if err != nil || answer != nil {
		return answer, err
	}
	body, err := json.Marshal(inquiry{key, question})
	if err != nil {
		return nil, fmt.Errorf("inquire %s: %w", key, err)
	}
	_, err = s.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.LPush(ctx, s.key.inquiries(pool), body)
		p.LTrim(ctx, s.key.inquiries(pool), 0, maxInquiries-1)
		p.PExpire(ctx, s.key.inquiries(pool), inquiryTTL)
		p.Publish(ctx, s.key.asked(), "")
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("inquire %s: %w", key, err)
	}
	gone := s.waitFor(ctx, s.key.replies(), key, func() bool {
		answer, err = s.replied(ctx, key)
		return answer != nil
	})
	if gone != nil {
		// Withdraw the question, so that no worker prepares a reply for nothing. If that fails, the question expires.
		_ = s.redis.LRem(context.WithoutCancel(ctx), s.key.inquiries(pool), 1, body).Err()
		return nil, fmt.Errorf("inquire %s: %w", key, errors.Join(gone, err))
	}
	return answer, nil
}

// replied returns the stored reply, or nil.
func (s *Workers) replied(ctx context.Context, key string) (json.RawMessage, error) {
	answer, err := s.redis.Get(ctx, s.key.reply(key)).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read answer to %s: %w", key, err)
	}
	return raw(answer), nil
}

// Respond answers the inquiries of a pool one after the other until ctx ends, which is the error. While ready returns
// false, it leaves them to other workers. A reply is kept for the time that answer returns; nil is no reply, and the
// inquirer keeps waiting.
func (s *Workers) Respond(
	ctx context.Context, pool string, ready func() bool,
	answer func(ctx context.Context, question json.RawMessage) (json.RawMessage, time.Duration),
) error {
	return s.waitFor(ctx, s.key.asked(), "", func() bool {
		for ctx.Err() == nil && ready() {
			body, err := s.redis.RPop(ctx, s.key.inquiries(pool)).Bytes()
			if err != nil {
				return false // no inquiry, or Redis is away
			}
			var q inquiry
			if json.Unmarshal(body, &q) != nil {
				continue
			}
			if known, err := s.replied(ctx, q.Key); err != nil || known != nil {
				continue // answered while it waited
			}
			words, keep := answer(ctx, q.Question)
			if words == nil {
				continue
			}
			_, _ = s.redis.TxPipelined(ctx, func(p redis.Pipeliner) error { // on failure the inquirer asks again
				p.Set(ctx, s.key.reply(q.Key), []byte(words), keep)
				p.Publish(ctx, s.key.replies(), q.Key)
				return nil
			})
		}
		return false
	})
}

// Leader is a candidate for work that one process does for the whole fleet. Leadership is an expiring lock. It avoids
// duplicate work but does not make it safe: after a pause two processes may both believe that they lead. So the store
// must refuse every step of a leader that comes too late.
//
// Methods may be called from any goroutine.
type Leader struct {
	db   *db
	name string
	who  string
	ttl  time.Duration
}

// Leader returns a candidate for the lead of that name. A leader that stops calling [Leader.Lead] is replaced after
// ttl.
func (s *Store) Leader(name string, ttl time.Duration) *Leader {
	return &Leader{db: s.db, name: name, who: rand.Text(), ttl: ttl}
}

// Lead takes the lead if it is free, or renews it. term identifies a period of uninterrupted leadership: a new one
// begins whenever the lead was free, because a leader died or Redis was away. It is empty if another process leads.
func (l *Leader) Lead(ctx context.Context) (term string, err error) {
	r, err := l.db.run(ctx, "lead", l.name, l.who, l.ttl.Milliseconds())
	return r.text(1), wrapf(err, "lead %s", l.name)
}

// Resign gives the lead up, if this candidate has it.
func (l *Leader) Resign(ctx context.Context) error {
	_, err := l.db.run(ctx, "resign", l.name, l.who)
	return wrapf(err, "resign from %s", l.name)
}
