package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Votes holds people's ratings of answers.
type Votes struct {
	*conn
	retention time.Duration // since the last vote
}

// maxVoters is the number of people who can vote on one task.
const maxVoters = 1000

// Vote is a person's rating of a task's answer, with their name and their reason for it, which may be empty. Only the
// reason may have several lines.
type Vote struct{ Vote, Name, Reason string }

// Vote stores a person's rating of a task's answer.
// The first vote of each person counts, and Vote returns it; of reasons for that vote the latest. Votes are kept for
// Retention after the last one.
func (s *Votes) Vote(ctx context.Context, id, voter string, v Vote) (first string, err error) {
	r, err := s.run(ctx, "vote", id, voter, v.Vote, v.Reason, maxVoters, s.retention.Milliseconds(), v.Name)
	if err == nil && r.text(0) == "no" {
		err = errors.New("too many people have voted")
	}
	if err != nil {
		return "", fmt.Errorf("vote on %s: %w", id, err)
	}
	return r.text(1), nil
}

// Of returns the votes on a task's answer, by voter.
func (s *Votes) Of(ctx context.Context, id string) (map[string]Vote, error) {
	fields, err := s.redis.HGetAll(ctx, s.key("votes", id)).Result()
	votes := make(map[string]Vote, len(fields))
	for voter, field := range fields {
		vote, more, _ := strings.Cut(field, "\n")
		name, reason, _ := strings.Cut(more, "\n")
		votes[voter] = Vote{vote, name, reason}
	}
	return votes, wrapf(err, "read votes on %s", id)
}
