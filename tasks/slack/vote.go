package slack

import (
	"context"

	"github.com/errand-fleet/errand/tasks"
)

// Ballot keeps what people think of answers.
type Ballot interface {
	// Vote notes a vote on a task, of each person the first: that comes back.
	Vote(ctx context.Context, task, voter, vote string) (stands string, err error)
}

// face is how a vote looks.
func face(vote string) string {
	if vote == good {
		return "👍"
	}
	return "👎"
}

// voteButtons ask what people think of a task's answer, where somebody keeps it.
func (s *Source) voteButtons(id string) []button {
	if s.cfg.Ballot == nil {
		return nil
	}
	return []button{{text: face(good), action: good, value: id}, {text: face(bad), action: bad, value: id}}
}

// vote notes what somebody thinks. Everybody who sees an answer may say so.
func (s *Source) vote(ctx context.Context, d *tasks.Desk, p press) {
	s.attend(ctx, p, func(ctx context.Context) (string, error) {
		st, err := s.known(ctx, d, p.value)
		if err != nil || s.cfg.Ballot == nil {
			return "", err
		}
		stands, err := s.cfg.Ballot.Vote(ctx, st.Task.ID, p.origin.User, p.action)
		if err != nil {
			return "", err
		}
		s.log.Info("feedback", "run", st.Task.ID, "thread", st.Task.Thread, "user", p.origin.User, "vote", stands)
		if stands != p.action {
			return voted + face(stands), nil
		}
		return thanks, nil
	})
}

// What is said to who has voted.
const (
	thanks = "Thank you for telling me."
	voted  = "You have told me before: "
)
