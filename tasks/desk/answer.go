package desk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/policy"
)

// maxAnswer bounds an answer to a question, in characters. A longer text should be a message.
const maxAnswer = 4 << 10

// Answer answers a question of a running task on behalf of by. An empty key means the only open question. If the
// question offers options, text can be the number of one. The first answer wins, and Answer returns it, regardless
// of who gave it. A *RoleError says that the visitor of the context may not answer. An *InputError says why the answer
// is invalid; ErrNotFound means that the task or question does not exist or is not open.
func (d *Desk) Answer(ctx context.Context, id, key, by, text string) (tasks.Answer, error) {
	return d.answer(ctx, id, key, tasks.Answer{Text: text, By: by, At: time.Now()})
}

func (d *Desk) answer(ctx context.Context, id, key string, given tasks.Answer) (tasks.Answer, error) {
	text := d.policy.Redactor.String(strings.TrimSpace(given.Text))
	if text == "" || utf8.RuneCountInString(text) > maxAnswer {
		why := fmt.Sprintf("An answer has from 1 to %d characters.", maxAnswer)
		return tasks.Answer{}, &tasks.InputError{Sentence: why}
	}
	if err := d.may(ctx, id, policy.Use); err != nil {
		return tasks.Answer{}, err
	}
	asked, err := d.Questions(ctx, id)
	if err != nil {
		return tasks.Answer{}, err
	}
	var q *tasks.Question
	for i := range asked {
		switch {
		case key == "" && asked[i].Answer == nil && q != nil:
			const why = "Several questions are open. Say which one you are answering."
			return tasks.Answer{}, &tasks.InputError{Sentence: why}
		case asked[i].Key == key, key == "" && asked[i].Answer == nil:
			q = &asked[i]
		}
	}
	if q == nil {
		return tasks.Answer{}, fmt.Errorf("answer task %s: no such question: %w", id, tasks.ErrNotFound)
	}
	if err := d.may(ctx, id, q.Answering()); err != nil {
		return tasks.Answer{}, err
	}
	if err := d.policy.PermitAnswer(ctx, d.store, askerIn(ctx), id, *q); err != nil {
		return tasks.Answer{}, err
	}
	text = choose(*q, text)
	given.Text = text
	first, err := d.store.Questions.Answer(ctx, id, q.Key, format.JSON(given), given.Message)
	if errors.Is(err, store.ErrEnded) {
		return tasks.Answer{}, fmt.Errorf("answer task %s: it has ended: %w", id, tasks.ErrNotFound)
	}
	if err != nil {
		return tasks.Answer{}, d.notFound(id, err)
	}
	var a tasks.Answer
	if err := json.Unmarshal(first, &a); err != nil {
		return tasks.Answer{}, fmt.Errorf("read answer of task %s: %w", id, err)
	}
	d.log.Info("question answered", "run", id, "by", given.By)
	if a.By == given.By && a.At.Equal(given.At) {
		*AnswerIn(ctx) = recorded(*q, a.Text)
		d.audit(ctx, answering(*q, a.Text), id, nil)
	}
	return a, nil
}

// answering returns what an answer to a question does, for the audit log.
func answering(q tasks.Question, answer string) string {
	switch {
	case q.Consent == "":
	case answer == tasks.Approve || answer == tasks.Always:
		return "approve"
	case strings.HasPrefix(answer, tasks.Deny):
		return "deny"
	}
	return "answer"
}

// recorded returns what the audit log has of an answer: the words of an approval or of a chosen option, and the length
// of any other text, which may be confidential.
func recorded(q tasks.Question, answer string) string {
	if q.Consent != "" || slices.Contains(q.Options, answer) {
		return answer
	}
	return fmt.Sprintf("%d characters", utf8.RuneCountInString(answer))
}

// choose returns the option that an answer names by its text, or by its number if no option has that text. It returns
// any other answer unchanged.
func choose(q tasks.Question, text string) string {
	for _, o := range q.Options {
		if strings.EqualFold(o, text) {
			return o
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(q.Options) {
		return q.Options[n-1]
	}
	return text
}

// Questions returns the questions of a task, answered or not. It skips questions that another version wrote and that
// it cannot decode.
func (d *Desk) Questions(ctx context.Context, id string) ([]tasks.Question, error) {
	stored, err := d.store.Questions.List(ctx, id)
	if err != nil {
		return nil, d.notFound(id, err)
	}
	return readQuestions(d.log, id, stored), nil
}

func readQuestions(log *slog.Logger, id string, stored []store.Question) (list []tasks.Question) {
	for _, s := range stored {
		q := tasks.Question{Fence: s.Fence}
		if err := json.Unmarshal(s.Body, &q); err != nil {
			log.Warn("unreadable question", "run", id, "err", err)
			continue
		}
		if s.Answer != nil {
			q.Answer = &tasks.Answer{}
			if err := json.Unmarshal(s.Answer, q.Answer); err != nil {
				log.Warn("unreadable answer", "run", id, "err", err)
			}
		}
		list = append(list, q)
	}
	return list
}

// askOpen sets the questions that the running tasks among the records wait for. It leaves out those of an earlier run
// that the present run has not asked again.
func (d *Desk) askOpen(ctx context.Context, records []store.Record, list []tasks.Status) error {
	var ids []string
	var at []int
	for i, rec := range records {
		if rec.State == store.Running && list[i].Unreadable == "" {
			ids, at = append(ids, rec.ID), append(at, i)
		}
	}
	stored, err := d.store.Questions.ListAll(ctx, ids)
	for n, questions := range stored {
		rec := records[at[n]]
		list[at[n]].Questions = slices.DeleteFunc(readQuestions(d.log, rec.ID, questions), func(q tasks.Question) bool {
			return q.Answer != nil || q.Fence != rec.Fence
		})
	}
	return err
}

// reply answers the open question of a running task with a message. The receipt is Answered if the message is the
// answer; it is New unless the message was used as an answer before.
func (d *Desk) reply(ctx context.Context, running string, t tasks.Task) (Receipt, error) {
	asked, err := d.Status(ctx, running)
	if err != nil || len(asked.Questions) != 1 || asked.Task.Source != t.Source {
		return Receipt{}, err
	}
	q := asked.Questions[0]
	if tasks.Born(t.ID).Add(t.Reply.Precision).Before(q.Asked) {
		return Receipt{}, nil
	}
	var text string
	switch {
	case t.Reply.Text != nil:
		if text, err = t.Reply.Text(ctx, q); err != nil {
			return Receipt{}, err
		}
	case asked.Task.Actor != t.Actor:
		return Receipt{}, nil
	default:
		text = t.Prompt
	}
	if len(t.Pictures) > 0 {
		text += "\n\n(Pictures came with this answer and cannot be shown with it. Ask for them in a separate message.)"
	}
	a, err := d.answer(ctx, running, q.Key, tasks.Answer{
		Text: text, By: t.Actor, Name: d.policy.People.NameOf(t), At: time.Now(), Message: t.ID,
	})
	receipt := Receipt{ID: running, Answered: true}
	switch {
	case errors.Is(err, tasks.ErrNotFound): // answered or ended in the meantime
		return Receipt{}, nil
	case errors.Is(err, store.ErrSpent):
		return receipt, nil
	case err != nil:
		return Receipt{}, err
	}
	receipt.New, receipt.Answered = true, a.Message == t.ID
	return receipt, nil
}
