package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

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

// inquiries returns the key of the inquiries of a pool.
func (s *Workers) inquiries(pool string) string {
	if pool == "" {
		return s.key("inquiries")
	}
	return s.key("inquiries", pool)
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
		p.LPush(ctx, s.inquiries(pool), body)
		p.LTrim(ctx, s.inquiries(pool), 0, maxInquiries-1)
		p.PExpire(ctx, s.inquiries(pool), inquiryTTL)
		p.Publish(ctx, s.key("asked"), "")
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("inquire %s: %w", key, err)
	}
	gone := s.hints.waitFor(ctx, s.key("replies"), key, func() bool {
		answer, err = s.replied(ctx, key)
		return answer != nil
	})
	if gone != nil {
		// Withdraw the question, so that no worker prepares a reply for nothing. If that fails, the question expires.
		_ = s.redis.LRem(context.WithoutCancel(ctx), s.inquiries(pool), 1, body).Err()
		return nil, fmt.Errorf("inquire %s: %w", key, errors.Join(gone, err))
	}
	return answer, nil
}

// replied returns the stored reply, or nil.
func (s *Workers) replied(ctx context.Context, key string) (json.RawMessage, error) {
	answer, err := s.redis.Get(ctx, s.key("reply", key)).Result()
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
	return s.hints.waitFor(ctx, s.key("asked"), "", func() bool {
		for ctx.Err() == nil && ready() {
			body, err := s.redis.RPop(ctx, s.inquiries(pool)).Bytes()
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
				p.Set(ctx, s.key("reply", q.Key), []byte(words), keep)
				p.Publish(ctx, s.key("replies"), q.Key)
				return nil
			})
		}
		return false
	})
}
