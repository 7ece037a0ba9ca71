package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

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
