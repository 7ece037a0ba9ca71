package github

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

const (
	noQuestion = "No question is waiting for an answer here."
	noConsent  = "This question does not ask for approval. Answer it with `/answer` or a mention."
)

// submitAnswer submits a comment as the answer to the open question of the pull request's running task. Anyone who can
// write to the repository may answer. A comment that was written before the question does not answer it: an approval of
// one call is not an approval of the next. It returns tasks.ErrNoQuestion for a mention that answers nothing, and for
// an approval on an issue: that of a plan.
func (i *interpreter) submitAnswer(ctx context.Context, h remarkEvent) (response string, err error) {
	command := h.said.word
	t := tasks.Task{
		ID: h.task(), Source: sourceName, Thread: h.thread(), Class: tasks.Interactive, Actor: h.Author,
		Reply: &tasks.Reply{
			Only: true, Precision: time.Second, // GitHub gives times in whole seconds
			Text: func(ctx context.Context, q tasks.Question) (string, error) {
				text, err := answerText(q, command, h.said.rest)
				if err != nil {
					return "", err
				}
				return text, i.gate.MustWrite(ctx, h.Ref, h.Author)
			},
		},
	}
	var receipt desk.Receipt
	_ = i.desk.As(ctx, h.sender(), "answer", h.String(), func(ctx context.Context) (bool, error) {
		if receipt, err = i.desk.Submit(ctx, t); errors.Is(err, tasks.ErrNoQuestion) {
			return false, nil
		}
		return false, err
	})
	if errors.Is(err, tasks.ErrNoQuestion) {
		if command == "" || command == cmdApprove && h.OnIssue {
			return "", err
		}
		i.note(ctx, h, noQuestion, notDone)
		return noQuestion, nil
	}
	if input, wrong := errors.AsType[*tasks.InputError](err); wrong {
		i.note(ctx, h, input.Sentence, notDone)
		return input.Sentence, nil
	}
	if err != nil {
		return "", fmt.Errorf("answer a question on %s: %w", h.Ref, err)
	}
	if !receipt.Answered {
		return "Task " + receipt.ID, nil
	}
	if !receipt.New {
		return "Answered before.", nil
	}
	i.log.Info("question answered by comment", "run", receipt.ID, "user", h.Author)
	i.note(ctx, h, "", done)
	return "Answer to task " + receipt.ID, nil
}

// answerText is the answer that a command, or a mention (no command), gives to a question.
func answerText(q tasks.Question, command, words string) (string, error) {
	switch {
	case command != "" && command != cmdAnswer && q.Consent == "":
		return "", thread.Refuse(noConsent)
	case command == cmdApprove:
		return tasks.Approve, nil
	case command == cmdAlways:
		return tasks.Always, nil
	case command == cmdDeny:
		return tasks.Denial(words), nil
	}
	return words, nil
}
