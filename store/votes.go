package store

import (
	"context"
	"errors"
	"fmt"
)

// maxVoters is the number of people who can vote on one task.
const maxVoters = 1000

// Vote stores a person's rating of a task's answer; the words are the caller's. The first vote of each person counts,
// and Vote returns it. Votes are kept for Retention after the last one.
func (s *Votes) Vote(ctx context.Context, id, voter, vote string) (stands string, err error) {
	r, err := s.run(ctx, "vote", id, voter, vote, maxVoters, s.cfg.Retention.Milliseconds())
	if err == nil && r.text(0) == "no" {
		err = errors.New("too many people have voted")
	}
	if err != nil {
		return "", fmt.Errorf("vote on %s: %w", id, err)
	}
	return r.text(1), nil
}

// Of returns the votes on a task's answer, by voter.
func (s *Votes) Of(ctx context.Context, id string) (map[string]string, error) {
	votes, err := s.redis.HGetAll(ctx, s.key.votes(id)).Result()
	if err != nil {
		return nil, fmt.Errorf("read votes on %s: %w", id, err)
	}
	return votes, nil
}
