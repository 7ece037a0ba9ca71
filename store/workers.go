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
	Pid, Slots, Running int   // Running of Slots are taken
	Memory              int64 `json:",omitempty"` // bytes available for further runs; 0 = nothing tells
	Started             time.Time
	Seen                time.Time       `json:"-"` // of the last beat, by Redis' clock; Beat ignores it
	Draining            bool            // takes nothing new
	Health              json.RawMessage `json:",omitempty"` // of its CLI; opaque
	Credential          string          `json:",omitempty"` // for the model, by its name; see [Credential]
	Notices             []Finding       `json:",omitempty"` // about its configuration
	URL                 string          `json:",omitempty"` // where front doors of other machines may ask it for logs
}

// Beat records that the worker is alive for the next 15 s.
func (s *Workers) Beat(ctx context.Context, w Worker) error {
	state, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("beat %s: %w", w.ID, err)
	}
	if _, err := s.run(ctx, "beat", w.ID, state, workerTTL.Milliseconds()); err != nil {
		return fmt.Errorf("beat %s: %w", w.ID, err)
	}
	return nil
}

// List lists those that live, by ID.
func (s *Workers) List(ctx context.Context) ([]Worker, error) {
	seen, err := s.redis.ZRangeWithScores(ctx, s.key.workers(), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
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
		// The index may name one that is gone until another worker's beat trims it.
		if state := reply(states).text(i); state != "" {
			if json.Unmarshal([]byte(state), &w) != nil { // of another version; it lives all the same
				w = Worker{ID: fmt.Sprint(z.Member), Health: json.RawMessage(`"unreadable"`)}
			}
			w.Seen = at(z)
			workers = append(workers, w)
		}
	}
	slices.SortFunc(workers, func(a, b Worker) int { return cmp.Compare(a.ID, b.ID) })
	return workers, nil
}

// Bounds of what waits for a worker.
const (
	inquiryTTL   = 30 * time.Second // nobody waits longer for an answer
	maxInquiries = 1000
)

// inquiry is a question that any worker can answer.
type inquiry struct {
	Key      string          `json:"key"`
	Question json.RawMessage `json:"question"`
}

// Inquire asks whichever worker is free, and waits for its answer until ctx ends, which is the error; the question is then taken back, unless a
// worker is at it. The key stands for the question: while the answer to an earlier one with that key is kept, it is that.
func (s *Workers) Inquire(ctx context.Context, key string, question json.RawMessage) (json.RawMessage, error) {
	answer, err := s.replied(ctx, key)
	if err != nil || answer != nil {
		return answer, err
	}
	body, err := json.Marshal(inquiry{key, question})
	if err != nil {
		return nil, fmt.Errorf("inquire %s: %w", key, err)
	}
	_, err = s.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.LPush(ctx, s.key.inquiries(), body)
		p.LTrim(ctx, s.key.inquiries(), 0, maxInquiries-1)
		p.PExpire(ctx, s.key.inquiries(), inquiryTTL)
		p.Publish(ctx, s.key.asked(), "")
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("inquire %s: %w", key, err)
	}
	gone := s.heed(ctx, s.key.replies(), key, func() bool {
		answer, err = s.replied(ctx, key)
		return answer != nil
	})
	if gone != nil {
		// Taken back, so that no worker looks for what nobody waits for; where that fails, it lapses.
		_ = s.redis.LRem(context.WithoutCancel(ctx), s.key.inquiries(), 1, body).Err()
		return nil, fmt.Errorf("inquire %s: %w", key, errors.Join(gone, err))
	}
	return answer, nil
}

// replied is the answer that is kept; nil when there is none.
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

// Respond answers what is inquired, one question after the other, until ctx ends, which is the error. While ready says no, questions are left
// to others. An answer is kept for as long as answer says; nil is none, and whoever asked waits on.
func (s *Workers) Respond(
	ctx context.Context, ready func() bool, answer func(ctx context.Context, question json.RawMessage) (json.RawMessage, time.Duration),
) error {
	return s.heed(ctx, s.key.asked(), "", func() bool {
		for ctx.Err() == nil && ready() {
			body, err := s.redis.RPop(ctx, s.key.inquiries()).Bytes()
			if err != nil {
				return false // there is none, or Redis is away
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
			_, _ = s.redis.TxPipelined(ctx, func(p redis.Pipeliner) error { // whoever waits asks again
				p.Set(ctx, s.key.reply(q.Key), []byte(words), keep)
				p.Publish(ctx, s.key.replies(), q.Key)
				return nil
			})
		}
		return false
	})
}

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
