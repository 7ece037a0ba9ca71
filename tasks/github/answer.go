package github

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// replies are the commands that answer what an agent has asked. So does a mention, while there is a question.
var replies = map[string]bool{sayAnswer: true, sayApprove: true, sayAlways: true, sayDeny: true}

// What is said of answers.
const (
	nobodyWaits = "Nobody waits for an answer here."
	noConsent   = "This question is not one to approve of. Answer it by `/answer`, or by a mention of me."
)

// reply takes a comment for the answer to what the task that runs for the pull request asks, if its author may write to the repository. What was
// written before the question, or while there is none, answers nothing: whoever approved of one call has not approved of the next, however late
// we hear of it.
func (s *Source) reply(ctx context.Context, desk *tasks.Desk, h heard, command, words string) (said string, taken bool, err error) {
	id, q, err := s.asking(ctx, desk, h)
	open := id != "" && !h.at.Add(time.Second).Before(q.Asked) // GitHub tells times in whole seconds
	switch {
	case err != nil:
		return "", false, fmt.Errorf("look for a question on %s: %w", h.origin(), err)
	case command == "" && (!open || words == ""):
		return "", false, nil
	case !open:
		return s.late(ctx, desk, h)
	}
	text := words
	switch {
	case command != "" && command != sayAnswer && q.Consent == "":
		h.after(func(ctx context.Context) { s.tell(ctx, h, notDone, noConsent) })
		return noConsent, true, nil
	case command == sayApprove:
		text = tasks.Approve
	case command == sayAlways:
		text = tasks.Always
	case command == sayDeny:
		text = tasks.Denial(words)
	}
	err = s.mustWrite(ctx, h.origin(), h.author)
	if _, ok := errors.AsType[*tasks.InputError](err); ok {
		h.after(func(ctx context.Context) { s.tell(ctx, h, notDone, "") })
	}
	if err != nil {
		return "", true, err
	}
	stands, known, err := desk.Reply(ctx, id, q.Key, h.author, text, h.task())
	sign, note := done, ""
	input, wrong := errors.AsType[*tasks.InputError](err)
	switch {
	case known:
		return "Answered before.", true, nil
	case wrong:
		sign, note = notDone, input.Sentence
	case errors.Is(err, tasks.ErrNotFound), err == nil && stands.Expired:
		sign, note = notDone, nobodyWaits
	case err != nil:
		return "", true, err
	case stands.Message != h.task():
		sign, note = notDone, fmt.Sprintf("%s has answered this already: %s", line(stands.By, 100), line(stands.Text, 300))
	default:
		s.log.Info("question answered by comment", "run", id, "user", h.author)
	}
	h.after(func(ctx context.Context) { s.tell(ctx, h, sign, note) })
	return "Answer to task " + id, true, nil
}

// asking is the question that a task of ours waits with in the conversation of a pull request; an empty ID when there is none. A task that
// was asked for elsewhere asks there.
func (s *Source) asking(ctx context.Context, desk *tasks.Desk, h heard) (id string, q tasks.Question, err error) {
	open, err := desk.Open(ctx, h.thread())
	if err != nil {
		return "", q, err
	}
	for _, st := range open {
		if st.State != "running" || st.Task.Source != s.Name() {
			continue
		}
		if st, err = desk.Status(ctx, st.Task.ID); err != nil {
			return "", q, err
		}
		if len(st.Questions) > 0 {
			return st.Task.ID, st.Questions[0], nil
		}
	}
	return "", q, nil
}

// late answers a command that comes when there is no question. It may be one that was an answer, whose event comes again.
func (s *Source) late(ctx context.Context, desk *tasks.Desk, h heard) (said string, taken bool, err error) {
	last, err := latestIn(ctx, desk, h.thread())
	if err != nil {
		return "", true, err
	}
	if last.Task.ID != "" {
		asked, err := desk.Questions(ctx, last.Task.ID)
		if err != nil {
			return "", true, err
		}
		for _, q := range asked {
			if q.Answer != nil && q.Answer.Message == h.task() {
				return "Answered before.", true, nil
			}
		}
	}
	h.after(func(ctx context.Context) { s.tell(ctx, h, notDone, nobodyWaits) })
	return nobodyWaits, true, nil
}

// latestIn is what was asked for last in a thread, or the task whose run has taken it up; zero where there is none.
func latestIn(ctx context.Context, d *tasks.Desk, thread string) (tasks.Status, error) {
	t, err := d.Thread(ctx, thread)
	var st tasks.Status
	if err == nil {
		st, err = d.Latest(ctx, t)
	}
	if errors.Is(err, tasks.ErrNotFound) {
		return tasks.Status{}, nil
	}
	return st, err
}
