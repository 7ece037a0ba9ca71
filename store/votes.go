package store

import (
	"context"
	"errors"
	"fmt"
)

// maxVoters is how many people may have their say about one task.
const maxVoters = 1000

// Vote notes what somebody thinks of a task's answer, in the word of whoever asks. The first vote of each person stands; it comes back.
// Votes are kept as long as a record, from the last one on.
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

// Of tells what people think of a task's answer, by voter.
func (s *Votes) Of(ctx context.Context, id string) (map[string]string, error) {
	votes, err := s.redis.HGetAll(ctx, s.key.votes(id)).Result()
	if err != nil {
		return nil, fmt.Errorf("read votes on %s: %w", id, err)
	}
	return votes, nil
}
