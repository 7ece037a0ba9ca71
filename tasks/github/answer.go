package github

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

const (
	noQuestion = "No question is waiting for an answer here."
	noConsent  = "This question does not ask for approval. Answer it with `/answer` or a mention."
)

// reply submits a comment as the answer to the open question of the pull request's running task. Anyone who can write to the repository may
// answer. A comment that was written before the question does not answer it: an approval of one call is not an approval of the next.
// It returns tasks.ErrNoQuestion for a mention that answers nothing.
func (s *Source) reply(ctx context.Context, desk *tasks.Desk, h heard, command, words string) (said string, err error) {
	receipt, err := desk.Submit(ctx, tasks.Task{
		ID: h.task(), Source: s.Name(), Thread: h.thread(), Class: tasks.Interactive, Actor: h.author,
		Reply: &tasks.Reply{
			Only: true, Precision: time.Second, // GitHub gives times in whole seconds
			Text: func(ctx context.Context, q tasks.Question) (string, error) {
				text, err := answerText(q, command, words)
				if err == nil {
					err = s.mustWrite(ctx, h.origin(), h.author)
				}
				return text, err
			},
		},
	})
	note := noQuestion
	input, wrong := errors.AsType[*tasks.InputError](err)
	switch {
	case errors.Is(err, tasks.ErrNoQuestion) && command == "":
		return "", err
	case errors.Is(err, tasks.ErrNoQuestion):
	case wrong:
		note = input.Sentence
	case err != nil:
		return "", fmt.Errorf("answer a question on %s: %w", h.origin(), err)
	case !receipt.Answered:
		return "Task " + receipt.ID, nil
	case !receipt.New:
		return "Answered before.", nil
	default:
		s.log.Info("question answered by comment", "run", receipt.ID, "user", h.author)
		h.after(func(ctx context.Context) { s.tell(ctx, h, done, "") })
		return "Answer to task " + receipt.ID, nil
	}
	h.after(func(ctx context.Context) { s.tell(ctx, h, notDone, note) })
	return note, nil
}

// answerText is the answer that a command, or a mention (no command), gives to a question.
func answerText(q tasks.Question, command, words string) (string, error) {
	switch {
	case command != "" && command != sayAnswer && q.Consent == "":
		return "", &tasks.InputError{Sentence: noConsent}
	case command == sayApprove:
		return tasks.Approve, nil
	case command == sayAlways:
		return tasks.Always, nil
	case command == sayDeny:
		return tasks.Denial(words), nil
	}
	return words, nil
}
